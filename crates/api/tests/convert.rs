//! The seeds' manifests, converted: what comes out, what is warned about, what is refused and where.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::{collections::BTreeMap, fs, path::PathBuf};

use portolan_api::convert::{Conversion, Problem, convert, to_json, to_yaml};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{schema_of, validate, with_defaults};

fn seeds() -> BTreeMap<String, String> {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/seeds"));
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn seed(name: &str) -> Conversion {
    convert(&seeds()[name]).unwrap()
}

fn warnings(conversion: &Conversion) -> Vec<String> {
    conversion.warnings.iter().map(ToString::to_string).collect()
}

fn refusal(input: &str) -> String {
    convert(input).unwrap_err().to_string()
}

#[test]
fn every_seed_becomes_an_object_that_our_rules_accept() {
    assert_eq!(seeds().len(), 10);
    for (name, text) in seeds() {
        let conversion = convert(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // A ForeignCluster of Liqo becomes a command, not an object.
        assert_eq!(conversion.documents.len(), usize::from(name != "liqo-foreigncluster"), "{name}");
        for object in &conversion.documents {
            assert_eq!(object["apiVersion"], portolan_api::API_VERSION, "{name}");
            let schema = schema_of(object["kind"].as_str().unwrap());
            let stored = with_defaults(schema, object);
            assert_eq!(validate(schema, &stored, None), Vec::<String>::new(), "{name}");
        }
    }
}

#[test]
fn listing_1_means_what_it_meant() {
    let conversion = seed("mck8s-listing-1");
    assert_eq!(conversion.warnings, []);
    let object = &conversion.documents[0];
    let mut spec = object["spec"].as_object().unwrap().clone();
    let template = spec.remove("template").unwrap();
    assert_eq!(object["kind"], "MultiClusterDeployment");
    assert_eq!(object["metadata"], json!({"name": "mcd-app-1"}));
    assert_eq!(
        Value::Object(spec),
        json!({
            "placementPolicy": "traffic-aware",
            "enableBursting": true,
            "burstingPolicy": "nearest-first",
            "numberOfLocations": 2,
            "selector": {"matchLabels": {"app": "mcd-app-1", "tier": "backend"}},
            "replicas": 5,
        })
    );
    assert_eq!(template["spec"]["containers"][0]["resources"]["requests"]["cpu"], "500m");
}

#[test]
fn locations_in_one_text_become_a_list() {
    let conversion = seed("mck8s-listing-2");
    assert_eq!(conversion.warnings, []);
    assert_eq!(conversion.documents[0]["spec"]["locations"], json!(["cluster2", "cluster5"]));
    assert_eq!(conversion.documents[0]["spec"]["substitutionPolicy"], "nearest-first");
}

#[test]
fn services_keep_their_annotations_and_named_ports() {
    let object = &seed("mck8s-listing-3").documents[0];
    assert_eq!(object["metadata"]["annotations"]["io.cilium/global-service"], "true");
    assert_eq!(object["spec"]["ports"], json!([{"protocol": "TCP", "port": 80, "targetPort": "http"}]));
}

#[test]
fn the_autoscaler_points_at_the_converted_deployment() {
    let object = &seed("mck8s-listing-4").documents[0];
    assert_eq!(
        object["spec"]["scaleTargetRef"],
        json!({"apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment", "name": "mcd-app-1"})
    );
    assert_eq!(object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 75);
}

#[test]
fn credentials_stay_behind_with_a_warning() {
    let conversion = seed("mck8s-listing-5");
    let spec = &conversion.documents[0]["spec"];
    assert_eq!(
        *spec,
        json!({"cloudClusterName": "cloud1", "cloudProvider": "OpenStack", "floatingIP": "1.2.3.4"})
    );
    let warnings = warnings(&conversion);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("document 1, line 10, column 3, spec.credentials: "), "{warnings:?}");
    assert!(warnings[0].contains("credentialsSecretRef"), "{warnings:?}");
    assert!(!to_yaml(&conversion.documents).unwrap().contains("xxxxx"));
    assert!(!warnings[0].contains("xxxxx"), "a warning must not repeat a secret");
}

#[test]
fn a_kind_without_spec() {
    let conversion = seed("mck8s-listing-6");
    assert_eq!(conversion.documents[0]["spec"], json!({}));
    assert!(warnings(&conversion).is_empty(), "{:?}", warnings(&conversion));
}

#[test]
fn a_foreign_cluster_of_liqo_becomes_the_command_that_peers_it() {
    let conversion = seed("liqo-foreigncluster");
    assert!(conversion.documents.is_empty(), "{:?}", conversion.documents);
    let warnings = warnings(&conversion);
    for words in ["`portolan peer --name milan --remote-context CONTEXT`", "left out: insecureSkipTLSVerify"]
    {
        assert!(warnings.iter().any(|warning| warning.contains(words)), "{words}: {warnings:?}");
    }
    assert!(
        warnings.iter().any(|warning| warning.contains("the status is not carried over")),
        "{warnings:?}"
    );
    let labelled = convert(
        "{apiVersion: discovery.liqo.io/v1alpha1, kind: ForeignCluster, metadata: {name: a, labels: {zone: b}}, \
         spec: {clusterIdentity: {clusterID: a, clusterName: a}}}",
    );
    let told = self::warnings(&labelled.unwrap());
    assert!(told[0].contains("CONTEXT --label zone=b`"), "{told:?}");
}

#[test]
fn liqo_namespace_offloading() {
    let conversion = seed("liqo-namespaceoffloading");
    let object = &conversion.documents[0];
    assert_eq!(object["metadata"], json!({"name": "offloading", "namespace": "liqo-demo"}));
    assert_eq!(object["spec"]["namespaceMappingStrategy"], "EnforceSameName");
    let warnings = warnings(&conversion);
    assert!(warnings.iter().any(|warning| warning.contains("topology.liqo.io/region")), "{warnings:?}");
}

#[test]
fn a_selector_that_cannot_be_carried_over_is_refused() {
    let offloading = |term: &str| {
        format!(
            "apiVersion: offloading.liqo.io/v1alpha1\nkind: NamespaceOffloading\nmetadata: {{name: offloading}}\nspec:\n  \
             clusterSelector:\n    nodeSelectorTerms:\n    - {term}\n"
        )
    };
    let fields = refusal(&offloading("matchFields: [{key: metadata.name, operator: In, values: [a]}]"));
    assert!(fields.starts_with(
        "document 1, line 7, column 7, spec.clusterSelector.nodeSelectorTerms[0].matchFields: "
    ));
    let operator = refusal(&offloading("matchExpressions: [{key: cores, operator: Gt, values: ['4']}]"));
    assert!(operator.contains("list the values with In instead"), "{operator}");
}

#[test]
fn a_capital_name_is_lowered_with_a_warning() {
    let conversion = seed("kubefed-featureconfig");
    assert_eq!(conversion.documents[0]["metadata"]["name"], "cpumanagementpolicy");
    assert_eq!(
        conversion.documents[0]["spec"],
        json!({"cpumanagementpolicy": "static", "podpreset": true, "networkpolicy": true})
    );
    assert!(warnings(&conversion)[0].contains("CPUManagementPolicy is written as cpumanagementpolicy"));
}

#[test]
fn what_has_no_effect_is_left_out_with_a_warning() {
    let text = "\
apiVersion: fogguru.eu/v1
kind: MultiClusterDeployment
metadata: {name: a}
spec:
  locations: one
  placementPolicy: worst-fit
  numberOfLocations: 3
  substitutionPolicy: nearest-first
  enableBursting: false
  burstingPolicy: nearest-first
  replicas: 1
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: []}}
";
    let conversion = convert(text).unwrap();
    let left_out: Vec<String> =
        conversion.warnings.iter().map(|warning| warning.place.path.clone()).collect();
    assert_eq!(
        left_out,
        ["spec.placementPolicy", "spec.numberOfLocations", "spec.substitutionPolicy", "spec.burstingPolicy"]
    );
    let schema = schema_of("MultiClusterDeployment");
    assert_eq!(
        validate(schema, &with_defaults(schema, &conversion.documents[0]), None),
        Vec::<String>::new()
    );
}

#[test]
fn many_documents_and_lists_in_order() {
    let all: String = seeds().into_values().collect::<Vec<_>>().join("\n---\n");
    let conversion = convert(&format!("---\n# nothing\n---\n{all}")).unwrap();
    assert_eq!(conversion.documents.len(), 9);
    let documents: Vec<usize> =
        conversion.warnings.iter().filter_map(|warning| warning.place.document).collect();
    assert!(documents.is_sorted(), "{documents:?}");
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [
        {"apiVersion": "fogguru.eu/v1", "kind": "MultiClusterRescheduler", "metadata": {"name": "a"}},
        {"apiVersion": "fogguru.eu/v1", "kind": "MultiClusterRescheduler", "metadata": {"name": "b"}},
    ]});
    assert_eq!(convert(&list.to_string()).unwrap().documents.len(), 2);
}

#[test]
fn unknown_documents_and_fields_are_errors_with_their_position() {
    let rescheduler = "apiVersion: fogguru.eu/v1\nkind: MultiClusterRescheduler\nmetadata: {name: a}\n";
    let text = format!("{rescheduler}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\n");
    let error = convert(&text).unwrap_err();
    assert!(matches!(&error.problem, Problem::UnknownDocument { kind, .. } if kind == "Deployment"));
    assert!(
        error.to_string().starts_with("document 2, line 6, column 1, kind: Deployment of apps/v1"),
        "{error}"
    );

    let ours = refusal("apiVersion: portolan.dev/v1alpha1\nkind: ForeignCluster\n");
    assert!(ours.contains("it is Portolan's already"), "{ours}");
    let version = refusal("apiVersion: fogguru.eu/v2\nkind: MultiClusterRescheduler\n");
    assert!(version.contains("MultiClusterRescheduler of fogguru.eu/v2 cannot be converted"), "{version}");

    let misprint = seeds()["mck8s-listing-3"].replace("protocol", "portcol");
    let error = refusal(&misprint);
    assert!(
        error
            .starts_with("document 1, line 13, column 5, spec.ports[0].portcol: unknown field; known here: "),
        "{error}"
    );
    assert!(error.contains("protocol"), "{error}");

    assert!(
        refusal(&format!("{rescheduler}spec: {{interval: 1m}}\n")).contains("spec.interval: unknown field")
    );
    assert!(refusal(&format!("{rescheduler}data: 1\n")).contains("line 4, column 1, data: unknown field"));
    assert!(refusal("kind: MultiClusterRescheduler\n").contains("the field apiVersion is missing"));
    assert!(refusal("- a\n").contains("must be a mapping, but is a list"));
    assert!(refusal("").contains("there is no document"));
    assert!(refusal("a: [").contains("neither YAML nor JSON"));
}

#[test]
fn wrong_values_are_errors_with_their_position() {
    let change = |from: &str, to: &str| refusal(&seeds()["mck8s-listing-2"].replace(from, to));
    let empty = change("cluster2, cluster5", "cluster2,, cluster5");
    assert!(empty.starts_with("document 1, line 8, column 3, spec.locations: "), "{empty}");
    assert!(change("cluster2, cluster5", "cluster2, cluster2").contains("names of different clusters"));
    assert!(change("cluster2, cluster5", "[cluster2]").contains("must be a text, but is a list"));
    assert!(
        change("enableBursting: true", "enableBursting: often")
            .contains("must be true or false, but is a text")
    );
    assert!(
        change("burstingPolicy: nearest-first", "burstingPolicy: cheapest")
            .contains("it must be one of nearest-first")
    );
    assert!(change("replicas: 5", "replicas: 5.5").contains("must be a whole number"));
    let target = seeds()["mck8s-listing-4"].replace("kind: MultiClusterDeployment", "kind: Deployment");
    assert!(refusal(&target).contains("nothing else can be scaled over clusters"));
    let identity = seeds()["liqo-foreigncluster"].replace("clusterName", "clustername");
    let told = refusal(&identity);
    assert!(told.contains("the field clusterName is missing"), "{told}");
}

#[test]
fn output_reads_back() {
    let text: String = seeds().into_values().collect::<Vec<_>>().join("\n---\n");
    let documents = convert(&text).unwrap().documents;
    let yaml: Vec<Value> = serde_saphyr::from_multiple(&to_yaml(&documents).unwrap()).unwrap();
    assert_eq!(yaml, documents);
    let list: Value = serde_json::from_str(&to_json(&documents).unwrap()).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap()), (&json!("List"), &documents));
    let single: Value = serde_json::from_str(&to_json(&documents[..1]).unwrap()).unwrap();
    assert_eq!(single, documents[0]);
}

/// A piece of text that is likely to get past the parser.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "apiVersion: fogguru.eu/v1\n",
        "kind: MultiClusterDeployment\n",
        "kind: List\n",
        "metadata:\n",
        "spec:\n",
        "  name: a\n",
        "  locations: ,\n",
        "items:\n",
        "- ",
        "---\n",
        "{",
        "}",
        "[",
        "]",
        ": ",
        "&a ",
        "*a",
        "!!int ",
        "|\n",
        "null\n",
        "\t",
        "\u{feff}",
        "  selector: {}\n",
        "  replicas: 99999999999999999999\n",
        "  template: 1e999\n",
        "\"",
        "'",
        "#",
        "\n",
        " ",
        "? ",
        "<<: ",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = convert(&String::from_utf8_lossy(&bytes)).map(|conversion| to_yaml(&conversion.documents));
    }

    #[test]
    fn broken_manifests_never_panic(fragments in proptest::collection::vec(fragment(), 0..24)) {
        let _ = convert(&fragments.concat()).map(|conversion| to_yaml(&conversion.documents));
    }

    #[test]
    fn a_seed_with_a_byte_changed_never_panics(
        index in 0usize..10, at in any::<proptest::sample::Index>(), with in any::<char>(),
    ) {
        let text = seeds().into_values().nth(index).unwrap();
        let mut characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        characters[at] = with;
        let changed: String = characters.into_iter().collect();
        let _ = convert(&changed).map(|conversion| to_yaml(&conversion.documents));
    }
}
