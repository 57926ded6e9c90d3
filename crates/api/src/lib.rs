//! The custom resources of Portolan: their types, schema and rules, and the conversion of other systems' manifests.
