//! Prints `docs/ops.md`, the reference page of all ops, from the op table.

use firstlight_graph::{Arity, Exactness, OpInfo, OpKind, Param, TypeRef};
use std::fmt::{Error, Write};

fn main() -> Result<(), Error> {
    print!("{}", page()?);
    Ok(())
}

fn page() -> Result<String, Error> {
    let mut out = String::new();
    let n_ops = OpKind::ALL.len();
    writeln!(out, "# Ops\n\nGenerated from the op table by `cargo xtask ops-page`; {n_ops} ops.\n")?;
    writeln!(out, "A parameter is `name: type`; `?` marks one that may be omitted, `...` one that may occur again.")?;
    for kind in OpKind::ALL {
        section(&mut out, kind.info())?;
    }
    Ok(out)
}

fn section(out: &mut String, op: &OpInfo) -> Result<(), Error> {
    writeln!(out, "\n## {}\n\n{}\n", op.name, op.doc)?;
    let params = |params: &[Param]| params.iter().map(|p| param(op, p)).collect::<Vec<_>>().join(", ");
    for (what, list) in [("Inputs", op.inputs), ("Outputs", op.outputs)] {
        if !list.is_empty() {
            writeln!(out, "- {what}: {}", params(list))?;
        }
    }
    for var in op.types {
        let names: Vec<String> = var.allowed.iter().map(|dtype| dtype.to_string()).collect();
        writeln!(out, "- {}: {}", var.name, names.join(" "))?;
    }
    for attribute in op.attributes {
        writeln!(out, "- Attribute `{}`: {}", attribute.name, attribute.doc)?;
    }
    let exactness = match op.exactness {
        Exactness::Exact => "exact",
        Exactness::Rounding => "to rounding",
        Exactness::Random => "draws of a generator",
    };
    writeln!(out, "- Result: {exactness}; named cases: {}", (op.cases)().len())
}

fn param(op: &OpInfo, param: &Param) -> String {
    let ty = match param.ty {
        TypeRef::Var(i) => op.types.get(usize::from(i)).map_or("?".to_owned(), |var| var.name.to_owned()),
        TypeRef::Fixed(dtype) => dtype.to_string(),
        TypeRef::Any => "any".to_owned(),
    };
    let mark = match param.arity {
        Arity::One => "",
        Arity::Optional => "?",
        Arity::Variadic(_) => "...",
    };
    format!("`{}: {ty}{mark}`", param.name)
}
