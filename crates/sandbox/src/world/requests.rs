//! Which requests something is about.

/// Which requests are meant; what is not said matches every one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    party: Option<String>,
    cluster: Option<String>,
    verbs: Vec<String>,
    resources: Vec<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl RequestFilter {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Those of one party.
    #[must_use]
    pub fn party(mut self, party: impl Into<String>) -> Self {
        self.party = Some(party.into());
        self
    }

    /// Those to one cluster.
    #[must_use]
    pub fn cluster(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// Those with this verb, as roles name it (`list`, `watch`, `patch`); called again, those with another one too.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verbs.push(verb.into());
        self
    }

    /// Those on this resource (`pods`, `deployments.apps`, `serviceaccounts/token`) or path (`/version`); called again,
    /// those on another one too.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resources.push(resource.into());
        self
    }

    /// Those in one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Those on the object of this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn matches(&self, asked: &Asked<'_>) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let among =
            |wanted: &[String], found: &str| wanted.is_empty() || wanted.iter().any(|each| each == found);
        is(&self.party, asked.party)
            && is(&self.cluster, asked.cluster)
            && among(&self.verbs, asked.verb)
            && among(&self.resources, asked.resource)
            && is(&self.namespace, asked.namespace)
            && is(&self.name, asked.name)
    }
}

/// One request, as filters see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) party: &'a str,
    pub(super) cluster: &'a str,
    pub(super) verb: &'a str,
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_matches_every_request() {
        let asked = Asked {
            party: "controller",
            cluster: "m1",
            verb: "list",
            resource: "pods",
            namespace: "",
            name: "",
        };
        assert!(RequestFilter::any().matches(&asked));
        let lists = RequestFilter::any().cluster("m1").verb("get").verb("list").resource("pods");
        assert!(lists.matches(&asked));
        assert!(!lists.matches(&Asked { verb: "watch", ..asked }));
        assert!(!lists.matches(&Asked { cluster: "m2", ..asked }));
        assert!(!RequestFilter::any().party("user").matches(&asked));
        assert!(!RequestFilter::any().name("web").matches(&asked));
    }
}
