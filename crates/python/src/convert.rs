//! Conversion between spec values and Python objects.

use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString,
};

/// Converts a Python value to a value of a spec. Numbers and arrays of other libraries are
/// converted by `tolist`, `__index__` and `__float__`, and a `timedelta` becomes a time span.
///
/// # Errors
/// `TypeError` for a value that a spec cannot contain.
pub fn to_node(value: &Bound<'_, PyAny>) -> PyResult<SpecNode> {
    Ok(SpecNode {
        place: SourceSpan::Program,
        value: to_value(value)?,
    })
}

fn to_value(value: &Bound<'_, PyAny>) -> PyResult<NodeValue> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(NodeValue::Text(text.extract()?));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(NodeValue::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(NodeValue::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(NodeValue::Float(value.extract()?));
    }
    if let Ok(span) = value.cast::<PyDelta>() {
        let seconds: f64 = span.call_method0("total_seconds")?.extract()?;
        return Ok(NodeValue::Text(format!("{seconds} s")));
    }
    if let Ok(table) = value.cast::<PyMapping>() {
        let mut entries = Vec::new();
        for item in table.items()?.iter() {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            entries.push(TableEntry {
                key,
                key_place: SourceSpan::Program,
                node: to_node(&value)?,
            });
        }
        return Ok(NodeValue::Table(entries));
    }
    if let Ok(items) = value.cast::<PySequence>() {
        let items = items.try_iter()?.map(|item| to_node(&item?));
        return Ok(NodeValue::Array(items.collect::<PyResult<_>>()?));
    }
    if let Some(value) = array(value)? {
        return Ok(value);
    }
    if let Ok(number) = value.call_method0("__index__") {
        return Ok(NodeValue::Integer(number.extract()?));
    }
    if let Ok(number) = value.call_method0("__float__") {
        return Ok(NodeValue::Float(number.extract()?));
    }
    Err(unknown(value))
}

/// Converts an array, series or scalar of numpy, or of a library that is based on it such as
/// pandas; `None` for other values.
fn array(value: &Bound<'_, PyAny>) -> PyResult<Option<NodeValue>> {
    // Times are converted separately, because `tolist` may drop their unit.
    let kind = value.getattr("dtype").and_then(|it| it.getattr("kind"));
    let kind = kind.and_then(|it| it.extract::<String>());
    match kind.as_deref() {
        Ok("m") => return spans(&value.call_method1("astype", ("timedelta64[ns]",))?).map(Some),
        Ok("M" | "c" | "V") => return Err(unknown(value)),
        _ => {}
    }
    let Ok(plain) = value.call_method0("tolist") else {
        return Ok(None);
    };
    // If `tolist` returns the object itself, the conversion would recurse infinitely.
    if plain.is(value) {
        return Ok(None);
    }
    to_value(&plain).map(Some)
}

/// Converts numpy time spans, in nanoseconds.
fn spans(value: &Bound<'_, PyAny>) -> PyResult<NodeValue> {
    let whole = value.call_method1("astype", ("int64",))?;
    fn of(value: &NodeValue) -> NodeValue {
        match value {
            NodeValue::Integer(nanos) => NodeValue::Text(format!("{nanos} ns")),
            NodeValue::Array(items) => {
                let item = |item: &SpecNode| SpecNode {
                    value: of(&item.value),
                    ..item.clone()
                };
                NodeValue::Array(items.iter().map(item).collect())
            }
            other => other.clone(),
        }
    }
    Ok(of(&to_value(&whole.call_method0("tolist")?)?))
}

fn unknown(value: &Bound<'_, PyAny>) -> PyErr {
    match value.get_type().name() {
        Ok(found) => PyTypeError::new_err(format!(
            "found a value of type {found}; a spec holds str, int, float, bool, list, dict, timedelta, and numpy's arrays and numbers"
        )),
        Err(error) => error,
    }
}

/// Formats `key=value` as on the command line. A text is not changed; other values are written as
/// TOML.
///
/// # Errors
/// `TypeError` for a value that a spec cannot contain.
#[pyfunction]
pub fn setting(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let node = to_node(value)?;
    let text = match &node.value {
        NodeValue::Text(text) => text.clone(),
        _ => node.to_toml(),
    };
    Ok(format!("{key}={text}"))
}

/// Converts a spec value to Python.
///
/// # Errors
/// An exception of the interpreter.
pub fn to_python<'py>(py: Python<'py>, node: &SpecNode) -> PyResult<Bound<'py, PyAny>> {
    match &node.value {
        NodeValue::Text(text) => text.into_bound_py_any(py),
        NodeValue::Integer(number) => number.into_bound_py_any(py),
        NodeValue::Float(number) => number.into_bound_py_any(py),
        NodeValue::Boolean(truth) => truth.into_bound_py_any(py),
        NodeValue::Array(items) => {
            let items: Vec<_> = items
                .iter()
                .map(|item| to_python(py, item))
                .collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_bound_py_any(py)
        }
        NodeValue::Table(entries) => {
            let dict = PyDict::new(py);
            for entry in entries {
                dict.set_item(&entry.key, to_python(py, &entry.node)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}

/// The value at a path in the syntax of `--set`, such as `link.wire.rate`. Members of lists are
/// selected by their `name`, `id` or index.
pub fn find<'n>(root: &'n SpecNode, path: &str) -> Option<&'n SpecNode> {
    path.split('.').try_fold(root, step)
}

/// The valid names in place of the first unknown part of a path; empty if the path exists.
pub fn known<'n>(root: &'n SpecNode, path: &str) -> Vec<&'n str> {
    let mut node = root;
    for segment in path.split('.') {
        let Some(next) = step(node, segment) else {
            let keys = node.entries().iter().map(|entry| entry.key.as_str());
            return keys
                .chain(node.items().iter().filter_map(SpecNode::own_name))
                .collect();
        };
        node = next;
    }
    Vec::new()
}

fn step<'n>(node: &'n SpecNode, segment: &str) -> Option<&'n SpecNode> {
    match &node.value {
        NodeValue::Array(items) => {
            let named = items.iter().find(|item| item.own_name() == Some(segment));
            named.or_else(|| items.get(segment.parse::<usize>().ok()?))
        }
        _ => node.get(segment),
    }
}
