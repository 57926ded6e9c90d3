//! What the script is made of.

use serde_json::Value;

/// Steps that build on each other, in a namespace of their own.
pub struct Scenario {
    /// Its name, and the end of its namespace's name.
    pub name: &'static str,
    /// The calls, in their order.
    pub steps: Vec<Step>,
}

/// One call.
///
/// In its path and body, `{ns}` stands for the scenario's namespace, and `{step|/pointer}` for a text out of the answer
/// of an earlier step.
pub struct Step {
    /// What it is called within its scenario.
    pub name: &'static str,
    /// The method.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// What the body is said to be.
    pub content_type: Option<&'static str>,
    /// What the answer shall be.
    pub accept: &'static str,
    /// The body.
    pub body: String,
    /// Headers beyond those.
    pub headers: Vec<(&'static str, &'static str)>,
    /// How it is carried out.
    pub kind: Kind,
    /// What of the answer's body is compared; all of it if not said.
    pub part: Option<fn(&Value) -> Value>,
}

/// How a step is carried out.
#[derive(Clone, Copy)]
pub enum Kind {
    /// One request, one answer, compared.
    Call,
    /// One request, and events until the server ends it, compared.
    Watch,
    /// Repeated until the answer's code and body are as wanted; not compared.
    Await(fn(u16, &Value) -> bool),
}

impl Scenario {
    /// A scenario.
    #[must_use]
    pub fn new(name: &'static str, steps: Vec<Step>) -> Self {
        Self { name, steps }
    }

    /// The namespace it works in.
    #[must_use]
    pub fn namespace(&self) -> String {
        format!("conformance-{}", self.name)
    }
}

impl Step {
    fn new(name: &'static str, method: &'static str, path: impl Into<String>) -> Self {
        let path = path.into();
        Self {
            name,
            method,
            path,
            content_type: None,
            accept: "application/json",
            body: String::new(),
            headers: Vec::new(),
            kind: Kind::Call,
            part: None,
        }
    }

    /// The body, of some type.
    #[must_use]
    pub fn sends(mut self, content_type: &'static str, body: impl Into<String>) -> Self {
        self.content_type = Some(content_type);
        self.body = body.into();
        self
    }

    fn json(self, body: &Value) -> Self {
        self.sends("application/json", body.to_string())
    }

    /// What the answer shall be.
    #[must_use]
    pub fn accepts(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// A header more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Only a part of the answer's body is compared.
    #[must_use]
    pub fn only(mut self, part: fn(&Value) -> Value) -> Self {
        self.part = Some(part);
        self
    }

    /// Repeats until the answer is as wanted, and does not compare it.
    #[must_use]
    pub fn until(mut self, wanted: fn(u16, &Value) -> bool) -> Self {
        self.kind = Kind::Await(wanted);
        self
    }
}

/// A request with any method and no body.
pub(super) fn call(name: &'static str, method: &'static str, path: impl Into<String>) -> Step {
    Step::new(name, method, path)
}

/// Reads one object or a list.
pub(super) fn get(name: &'static str, path: impl Into<String>) -> Step {
    Step::new(name, "GET", path)
}

/// Watches until the server ends it; the path says after how many seconds.
pub(super) fn watch(name: &'static str, path: impl Into<String>) -> Step {
    Step { kind: Kind::Watch, ..Step::new(name, "GET", path) }
}

/// Creates.
pub(super) fn post(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "POST", path).json(body)
}

/// Updates.
pub(super) fn put(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "PUT", path).json(body)
}

/// Deletes.
pub(super) fn delete(name: &'static str, path: impl Into<String>) -> Step {
    Step::new(name, "DELETE", path)
}

/// Deletes with options.
pub(super) fn delete_with(name: &'static str, path: impl Into<String>, options: &Value) -> Step {
    Step::new(name, "DELETE", path).json(options)
}

/// Patches by a list of operations.
pub(super) fn json_patch(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "PATCH", path).sends("application/json-patch+json", body.to_string())
}

/// Patches by merging.
pub(super) fn merge_patch(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "PATCH", path).sends("application/merge-patch+json", body.to_string())
}

/// Patches by merging as the kind's own rules say.
pub(super) fn strategic_patch(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "PATCH", path).sends("application/strategic-merge-patch+json", body.to_string())
}

/// Applies on the server.
pub(super) fn apply(name: &'static str, path: impl Into<String>, body: &Value) -> Step {
    Step::new(name, "PATCH", path).sends("application/apply-patch+yaml", body.to_string())
}
