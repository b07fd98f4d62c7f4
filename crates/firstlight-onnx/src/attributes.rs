//! The attributes of a node or a call, with references to a function's attributes resolved.

use crate::proto::{AttributeValue, FunctionProto, NodeProto};

/// Attributes of one node or function; they are few, so that looking one up may walk them.
const MAX_ATTRIBUTES: usize = 256;

/// Attributes by name.
#[derive(Debug, Default)]
pub(crate) struct Attributes<'m> {
    list: Vec<(&'m str, &'m AttributeValue<'m>)>,
    /// Of a function that is being inlined: the attributes that it declares, given or not.
    declared: Vec<&'m str>,
}

impl<'m> Attributes<'m> {
    /// The attributes of a node. `outer` are those that the function around it was called with: a reference to one that
    /// the caller left out leaves this one out too.
    ///
    /// **Errors**: an attribute twice, a reference of another kind than what it refers to, a graph by reference.
    pub(crate) fn of_node(node: &'m NodeProto<'m>, outer: &Attributes<'m>) -> Result<Self, String> {
        check_count(node.attributes.len())?;
        let mut out = Self::default();
        for attribute in &node.attributes {
            let (name, mut value) = (attribute.name, &attribute.value);
            if let AttributeValue::Reference { name: theirs, kind } = value {
                if !outer.declared.contains(theirs) {
                    return Err(format!(
                        "attribute `{name}` refers to `{theirs}`, which no function around it declares"
                    ));
                }
                let Some(given) = outer.get(theirs) else { continue };
                if *kind != 0 && *kind != given.kind_number() {
                    let given = given.kind();
                    return Err(format!("attribute `{name}` refers to `{theirs}` as kind {kind}, but that is {given}"));
                }
                if matches!(given, AttributeValue::Graph(_) | AttributeValue::Graphs(_)) {
                    return Err(format!("attribute `{name}` takes a graph from a function's attribute: not supported"));
                }
                value = given;
            }
            if out.get(name).is_some() {
                return Err(format!("attribute `{name}` is given twice"));
            }
            out.list.push((name, value));
        }
        Ok(out)
    }

    /// What a call gives as the attributes of its function, defaults included.
    ///
    /// **Errors**: an attribute that the function does not declare.
    pub(crate) fn bound_to(mut self, function: &'m FunctionProto<'m>) -> Result<Self, String> {
        check_count(function.attributes.len().max(function.attribute_protos.len()))?;
        self.declared = function.attributes.clone();
        self.declared.extend(function.attribute_protos.iter().map(|a| a.name));
        if let Some((unknown, _)) = self.list.iter().find(|(name, _)| !self.declared.contains(name)) {
            return Err(format!("it has no attribute `{unknown}`"));
        }
        for default in &function.attribute_protos {
            if self.get(default.name).is_none() {
                self.list.push((default.name, &default.value));
            }
        }
        Ok(self)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'m AttributeValue<'m>> {
        self.position(name).and_then(|i| self.at(i))
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|(n, _)| *n == name)
    }

    pub(crate) fn at(&self, i: usize) -> Option<&'m AttributeValue<'m>> {
        self.list.get(i).map(|(_, value)| *value)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&'m str, &'m AttributeValue<'m>)> + '_ {
        self.list.iter().copied()
    }
}

fn check_count(n: usize) -> Result<(), String> {
    if n <= MAX_ATTRIBUTES { Ok(()) } else { Err(format!("{n} attributes are more than {MAX_ATTRIBUTES}")) }
}
