//! Resolution of one file into the worlds that it describes: sources of values, and points of
//! sweeps.
//!
//! The sources of values, in order of increasing precedence: `[parameters]` of the file,
//! `parameters` of an experiment, `--set`, a point of a sweep. Each of them names a parameter, or a
//! key of the file by its path (`link.satellite.rate`, in which members of an array of tables are
//! addressed by their `name` or `id`).

use crate::diagnostic::Diagnostic;
use crate::limits::MAX_POINTS;
use crate::source_span::SourceSpan;
use crate::tree::{Node, NodeValue, OWN_NAMES, TableEntry};

/// The section of parameters.
const PARAMETERS: &str = "parameters";

/// An assignment: key, position of the key, value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Name of a parameter, or a path.
    pub key: String,
    /// Position of the key.
    pub key_place: SourceSpan,
    /// The value.
    pub node: Node,
}

impl Setting {
    /// The assignment made by an entry of a table.
    pub fn of(entry: &TableEntry) -> Self {
        Setting {
            key: entry.key.clone(),
            key_place: entry.key_place.clone(),
            node: entry.node.clone(),
        }
    }

    /// Parses argument `number` of `--set`.
    ///
    /// # Errors
    /// An argument without `=`.
    pub fn parse(argument: &str, number: usize) -> Result<Self, Diagnostic> {
        let place = SourceSpan::Argument(number);
        match argument.split_once('=') {
            Some((key, value)) => Ok(Setting {
                key: key.trim().to_owned(),
                key_place: place,
                node: Node::parse_argument(key.trim(), value.trim(), number)?,
            }),
            None => Err(Diagnostic::new(
                place,
                "",
                format!("found {argument:?}; write --set key=value"),
            )),
        }
    }

    /// Assigns the value in a tree.
    ///
    /// # Errors
    /// A key that the tree does not have, or the name of an item.
    pub fn apply(&self, root: &mut Node) -> Result<(), Diagnostic> {
        if let Some(parameter) = root
            .get_mut(PARAMETERS)
            .and_then(|parameters| parameters.get_mut(&self.key))
        {
            *parameter = self.node.clone();
            return Ok(());
        }
        if !self.key.contains('.') && root.get(&self.key).is_none() {
            let parameters = root.get(PARAMETERS).map(Node::entries).unwrap_or_default();
            let known: Vec<&str> = parameters.iter().map(|entry| entry.key.as_str()).collect();
            let hint = match (path_to(root, &self.key), known.as_slice()) {
                (Some(path), _) => format!("; a key goes by its path, here `{path}`"),
                (None, []) => {
                    "; this spec has none; a key goes by its path, such as link.NAME.rate"
                        .to_owned()
                }
                (None, _) => String::new(),
            };
            let message = format!("no parameter has this name{hint}");
            return Err(self.unknown(&self.key, &message, &known));
        }
        if self.key == PARAMETERS {
            return Err(self.whole_parameters());
        }
        self.check_name(root)?;
        self.put(root)
    }

    /// Rejects the replacement of all parameters, because the parameters that it leaves out would
    /// be lost; the intent is usually to set some of them.
    fn whole_parameters(&self) -> Diagnostic {
        let names = self.node.entries().iter();
        let names: Vec<String> = names.map(|entry| format!("`{}`", entry.key)).collect();
        let instead = match names.as_slice() {
            [] => "a parameter is set by its name alone".to_owned(),
            names => format!("set {} without the table around", names.join(", ")),
        };
        let message = format!("names all parameters at once; {instead}");
        Diagnostic::new(self.key_place.clone(), PARAMETERS, message)
    }

    /// Rejects a new name for an item of a list, because the rest of the file refers to it by its
    /// old name.
    fn check_name(&self, root: &mut Node) -> Result<(), Diagnostic> {
        let (node, last, is_item) = self.parent(root)?;
        match node.own_name() {
            Some(name) if is_item && OWN_NAMES.contains(&last) => {
                let message = format!(
                    "found another name; the rest of the file refers to {name:?} by this one: change it there"
                );
                Err(Diagnostic::new(self.key_place.clone(), &self.key, message))
            }
            _ => Ok(()),
        }
    }

    /// Sets the last key of the path. The key may be absent, because the types decide which keys
    /// are allowed.
    pub(crate) fn put(&self, root: &mut Node) -> Result<(), Diagnostic> {
        let (node, last, _) = self.parent(root)?;
        match &mut node.value {
            NodeValue::Table(entries) => match entries.iter_mut().find(|entry| entry.key == last) {
                Some(entry) => entry.node = self.node.clone(),
                None => entries.push(TableEntry {
                    key: last.to_owned(),
                    key_place: self.key_place.clone(),
                    node: self.node.clone(),
                }),
            },
            NodeValue::Array(items) if items.iter().any(|it| it.own_name() == Some(last)) => {
                let whole = &self.key;
                let message =
                    format!("names the whole of `{last}`; write `{whole}.KEY`, a key of it");
                return Err(Diagnostic::new(self.key_place.clone(), whole, message));
            }
            _ => return Err(self.unknown_step(last, node)),
        }
        Ok(())
    }

    /// Walks the path to the parent of its last key. Returns the parent, the key, and whether it is
    /// an item of a list.
    fn parent<'a>(&self, root: &'a mut Node) -> Result<(&'a mut Node, &str, bool), Diagnostic> {
        let mut segments: Vec<&str> = self.key.split('.').collect();
        let last = segments.pop().unwrap_or_default();
        let mut node = root;
        let mut is_item = false;
        for segment in segments {
            let step = match &node.value {
                NodeValue::Table(entries) => entries.iter().position(|entry| entry.key == segment),
                NodeValue::Array(items) => items
                    .iter()
                    .position(|item| item.own_name() == Some(segment))
                    .or_else(|| segment.parse().ok().filter(|&index| index < items.len())),
                _ => None,
            };
            let Some(step) = step else {
                return Err(self.unknown_step(segment, node));
            };
            is_item = matches!(node.value, NodeValue::Array(_));
            node = match &mut node.value {
                NodeValue::Table(entries) => &mut entries[step].node,
                NodeValue::Array(items) => &mut items[step],
                _ => unreachable!("a step was found in a table or an array"),
            };
        }
        Ok((node, last, is_item))
    }

    fn unknown_step(&self, segment: &str, node: &Node) -> Diagnostic {
        let keys = node.entries().iter().map(|entry| entry.key.as_str());
        let names = node.items().iter().filter_map(Node::own_name);
        let known: Vec<&str> = keys.chain(names).collect();
        // The value comes from a parameter, so its keys must be set there.
        let why = match node.text() {
            Some(text) if is_parameter(text) => {
                let name = text.trim_start_matches('$');
                format!(
                    ": {text:?} stands here; set the parameter, or a key of it, as {PARAMETERS}.{name}.{segment}"
                )
            }
            _ => String::new(),
        };
        self.unknown(
            segment,
            &format!("there is no `{segment}` here{why}"),
            &known,
        )
    }

    fn unknown(&self, found: &str, what: &str, known: &[&str]) -> Diagnostic {
        Diagnostic::new(self.key_place.clone(), self.key.clone(), what)
            .allowed(found, known.iter().copied())
    }
}

/// The path of the first key of this name. Experiments are not searched, because they only refer to
/// keys of other sections.
fn path_to(node: &Node, key: &str) -> Option<String> {
    let entries = || {
        let entries = node.entries().iter();
        entries.filter(|entry| entry.key != "experiment")
    };
    let own = entries().find(|entry| entry.key == key);
    let own = own.map(|entry| entry.key.clone());
    let below = || entries().find_map(|it| Some(format!("{}.{}", it.key, path_to(&it.node, key)?)));
    let members = || {
        let mut items = node.items().iter().enumerate();
        items.find_map(|(index, item)| {
            let path = path_to(item, key)?;
            let name = item.own_name().map_or(index.to_string(), str::to_owned);
            Some(format!("{name}.{path}"))
        })
    };
    own.or_else(below).or_else(members)
}

/// Whether a text is the name of a single parameter, and not an expression over parameters.
fn is_parameter(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// One point of an experiment's sweeps: its position and its assignments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweptPoint {
    /// `(x_name, x)`, with the x as written in the file.
    pub point: Vec<(String, Node)>,
    /// The assignments of the point.
    pub settings: Vec<Setting>,
}

/// Every combination of an experiment's sweeps, the last one varying fastest. One empty point if
/// there is no sweep. Points are computed on request, so that memory does not depend on their
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Number of points of each sweep.
    counts: Vec<usize>,
}

impl Points {
    /// The points of an experiment that was decoded without fault, so that the shapes are known.
    /// `path` is its path, for error messages.
    ///
    /// # Errors
    /// Sweeps without points, or with a repeated x; more than [`MAX_POINTS`].
    pub fn of(experiment: &Node, path: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut counts: Vec<usize> = Vec::new();
        let mut problems = Vec::new();
        let mut all = 1;
        for (index, sweep) in sweeps(experiment).iter().enumerate() {
            let path = Node::item_path(&format!("{path}.sweep"), index, sweep);
            match Axis::of(sweep, &path).and_then(|axis| axis.distinct(&path)) {
                Ok(points) if points > MAX_POINTS / all => {
                    let message = format!(
                        "found {points} points, {} with the sweeps before; an experiment has at most {MAX_POINTS}",
                        points * all,
                    );
                    return Err(vec![Diagnostic::new(sweep.place.clone(), path, message)]);
                }
                Ok(points) => {
                    all *= points;
                    counts.push(points);
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(Self { counts })
        } else {
            Err(problems)
        }
    }

    /// Number of points.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The point of the same experiment at an index below [`Self::count`].
    pub fn get(&self, experiment: &Node, place: usize) -> SweptPoint {
        let mut all = SweptPoint::default();
        let mut within = self.count();
        for (sweep, count) in sweeps(experiment).iter().zip(&self.counts) {
            within /= count;
            // Each sweep was read without fault before.
            if let Ok(axis) = Axis::of(sweep, "") {
                axis.add_to(&mut all, place / within % count);
            }
        }
        all
    }

    /// All points, in order.
    pub fn iter<'a>(&'a self, experiment: &'a Node) -> impl Iterator<Item = SweptPoint> + 'a {
        (0..self.count()).map(|place| self.get(experiment, place))
    }

    /// The points of each sweep alone.
    pub fn of_each(&self, experiment: &Node) -> Vec<Vec<SweptPoint>> {
        let axes = sweeps(experiment).iter().zip(&self.counts);
        let axes = axes.filter_map(|(sweep, count)| Some((Axis::of(sweep, "").ok()?, *count)));
        axes.map(|(axis, count)| {
            let alone = |place| {
                let mut point = SweptPoint::default();
                axis.add_to(&mut point, place);
                point
            };
            (0..count).map(alone).collect()
        })
        .collect()
    }
}

fn sweeps(experiment: &Node) -> &[Node] {
    experiment.get("sweep").map(Node::items).unwrap_or_default()
}

/// A value of a sweep as text. Equal values give equal texts: 0, 0.0 and -0.0.
fn as_compared(x: &Node) -> String {
    match &x.value {
        NodeValue::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            (*number as i64).to_string()
        }
        _ => x.to_json().to_string(),
    }
}

/// A parsed sweep.
struct Axis<'a> {
    /// The name of its x.
    name: &'a str,
    /// The parameter that takes each of the values; `None` if points are listed.
    parameter: Option<&'a Node>,
    /// The points or values; not empty.
    items: &'a [Node],
}

impl<'a> Axis<'a> {
    fn of(sweep: &'a Node, path: &str) -> Result<Self, Diagnostic> {
        let name = sweep.get("name").and_then(Node::text);
        let wrong = |message: &str| Diagnostic::new(sweep.place.clone(), path, message);
        let filled = |list: &'a Node, key: &str, one: &str| match list.items() {
            [] => {
                let message = format!("found an empty list; a sweep needs at least one {one}");
                let path = format!("{path}.{key}");
                Err(Diagnostic::new(list.place.clone(), path, message))
            }
            items => Ok(items),
        };
        match (sweep.get("points"), sweep.get("parameter")) {
            (Some(points), None) => Ok(Self {
                name: name.ok_or_else(|| wrong("a sweep with `points` needs a `name`"))?,
                parameter: None,
                items: filled(points, "points", "point")?,
            }),
            (None, Some(parameter)) => {
                let values = sweep.get("values");
                let values =
                    values.ok_or_else(|| wrong("a sweep over a `parameter` needs `values`"))?;
                Ok(Self {
                    name: name.or(parameter.text()).unwrap_or_default(),
                    parameter: Some(parameter),
                    items: filled(values, "values", "value")?,
                })
            }
            (Some(_), Some(_)) => Err(wrong(
                "a sweep has either `points`, or a `parameter` with `values`; found both",
            )),
            (None, None) => Err(wrong(
                "a sweep has either `points`, or a `parameter` with `values`; found neither",
            )),
        }
    }
}

impl Axis<'_> {
    /// Number of points. An x must not be repeated, because tables could not distinguish the two
    /// points.
    fn distinct(&self, path: &str) -> Result<usize, Diagnostic> {
        let mut seen = std::collections::BTreeSet::new();
        for x in self.items.iter().filter_map(|item| self.x(item)) {
            if !seen.insert(as_compared(x)) {
                let message = format!("found {} twice among the points of a sweep", x.describe());
                return Err(Diagnostic::new(x.place.clone(), path, message));
            }
        }
        Ok(self.items.len())
    }

    /// The x of an item.
    fn x<'n>(&self, item: &'n Node) -> Option<&'n Node> {
        match self.parameter {
            Some(_) => Some(item),
            None => item.get("x"),
        }
    }

    /// Adds the x and the assignments of the item at an index.
    fn add_to(&self, point: &mut SweptPoint, place: usize) {
        let item = &self.items[place];
        let x = self.x(item).cloned();
        point.point.extend(x.map(|x| (self.name.to_owned(), x)));
        match self.parameter {
            Some(parameter) => point.settings.push(Setting {
                key: parameter.text().unwrap_or_default().to_owned(),
                key_place: parameter.place.clone(),
                node: item.clone(),
            }),
            None => {
                let rest = item.entries().iter().filter(|entry| entry.key != "x");
                point.settings.extend(rest.map(Setting::of));
            }
        }
    }
}
