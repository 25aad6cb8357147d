//! Points of a file's sweeps, and the sources of the values at each point.
//!
//! The sources, in order of increasing precedence: `[parameters]` of the file, `parameters` of an
//! experiment, `--set`, and a point of a sweep. Each source sets a parameter, or a key of the file
//! by its path. In a path such as `link.satellite.rate`, tables of a list are identified by their
//! `name` or `id`.

use crate::diagnostic::Diagnostic;
use crate::limits::MAX_POINTS;
use crate::source_span::SourceSpan;
use crate::tree::{NodeValue, OWN_NAMES, SpecNode, TableEntry};

/// Name of the section with the parameters.
const PARAMETERS: &str = "parameters";

/// An assignment of a value to a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Name of a parameter, or path of a key.
    pub key: String,
    /// Source position of the key.
    pub key_place: SourceSpan,
    /// Value that is assigned.
    pub node: SpecNode,
}

impl Assignment {
    /// Assignment that an entry of a table makes.
    pub fn of(entry: &TableEntry) -> Self {
        Assignment {
            key: entry.key.clone(),
            key_place: entry.key_place.clone(),
            node: entry.node.clone(),
        }
    }

    /// Parses argument `number` of `--set`.
    ///
    /// # Errors
    /// The argument does not contain `=`.
    pub fn parse(argument: &str, number: usize) -> Result<Self, Diagnostic> {
        let place = SourceSpan::Argument(number);
        match argument.split_once('=') {
            Some((key, value)) => Ok(Assignment {
                key: key.trim().to_owned(),
                key_place: place,
                node: SpecNode::parse_argument(key.trim(), value.trim(), number)?,
            }),
            None => Err(Diagnostic::new(
                place,
                "",
                format!("found {argument:?}; write --set key=value"),
            )),
        }
    }

    /// Sets the value in a tree.
    ///
    /// # Errors
    /// The tree lacks the key, or the key is the `name` or `id` of a list item.
    pub fn apply(&self, root: &mut SpecNode) -> Result<(), Diagnostic> {
        if let Some(parameter) = root
            .get_mut(PARAMETERS)
            .and_then(|parameters| parameters.get_mut(&self.key))
        {
            *parameter = self.node.clone();
            return Ok(());
        }
        if !self.key.contains('.') && root.get(&self.key).is_none() {
            let parameters = root
                .get(PARAMETERS)
                .map(SpecNode::entries)
                .unwrap_or_default();
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

    /// Error for an assignment to the whole section of parameters. Such an assignment is rejected
    /// because the parameters that it omits would be lost, although users usually want to set only
    /// some parameters.
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

    /// Rejects an assignment to the name of a list item, because other parts of the file refer to
    /// the item by its old name.
    fn check_name(&self, root: &mut SpecNode) -> Result<(), Diagnostic> {
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

    /// Sets the value of the last key of the path. The key may be missing in the tree, because
    /// decoding checks which keys are allowed.
    pub(crate) fn put(&self, root: &mut SpecNode) -> Result<(), Diagnostic> {
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

    /// Finds the table that contains the last key of the path. Returns the table, the key, and
    /// whether the table is an item of a list.
    fn parent<'a>(
        &self,
        root: &'a mut SpecNode,
    ) -> Result<(&'a mut SpecNode, &str, bool), Diagnostic> {
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

    fn unknown_step(&self, segment: &str, node: &SpecNode) -> Diagnostic {
        let keys = node.entries().iter().map(|entry| entry.key.as_str());
        let names = node.items().iter().filter_map(SpecNode::own_name);
        let known: Vec<&str> = keys.chain(names).collect();
        // This value is a reference to a parameter, so its keys can only be set in the parameter.
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

/// Path of the first key with this name. Experiments are not searched, because they only refer to
/// keys of other sections.
fn path_to(node: &SpecNode, key: &str) -> Option<String> {
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

/// Whether a text is the name of a single parameter, and no expression.
fn is_parameter(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// One point of an experiment's sweeps: its x values and its assignments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweptPoint {
    /// Names and values of x, with the values as written in the file.
    pub point: Vec<(String, SpecNode)>,
    /// The assignments of the point.
    pub settings: Vec<Assignment>,
}

/// All points of an experiment: every combination of its sweeps, of which the last varies fastest.
/// Without sweeps there is one empty point. Points are computed on request, so memory does not
/// depend on their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Number of points of each sweep.
    counts: Vec<usize>,
}

impl Points {
    /// Points of an experiment that was decoded without errors, so that its sweeps have the right
    /// form. `path` is the path of the experiment, for error messages.
    ///
    /// # Errors
    /// A sweep has no points, an x is repeated, or there are more than [`MAX_POINTS`] points.
    pub fn of(experiment: &SpecNode, path: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut counts: Vec<usize> = Vec::new();
        let mut problems = Vec::new();
        let mut all = 1;
        for (index, sweep) in sweeps(experiment).iter().enumerate() {
            let path = SpecNode::item_path(&format!("{path}.sweep"), index, sweep);
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

    /// The point with this index, which must be below [`Self::count`].
    pub fn get(&self, experiment: &SpecNode, place: usize) -> SweptPoint {
        let mut all = SweptPoint::default();
        let mut within = self.count();
        for (sweep, count) in sweeps(experiment).iter().zip(&self.counts) {
            within /= count;
            // Parsing cannot fail, because each sweep was parsed before.
            if let Ok(axis) = Axis::of(sweep, "") {
                axis.add_to(&mut all, place / within % count);
            }
        }
        all
    }

    /// All points, in order.
    pub fn iter<'a>(&'a self, experiment: &'a SpecNode) -> impl Iterator<Item = SweptPoint> + 'a {
        (0..self.count()).map(|place| self.get(experiment, place))
    }

    /// Points of each sweep alone.
    pub fn of_each(&self, experiment: &SpecNode) -> Vec<Vec<SweptPoint>> {
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

fn sweeps(experiment: &SpecNode) -> &[SpecNode] {
    experiment
        .get("sweep")
        .map(SpecNode::items)
        .unwrap_or_default()
}

/// An x value as text, for comparison. Equal values have equal texts, such as 0, 0.0 and -0.0.
fn as_compared(x: &SpecNode) -> String {
    match &x.value {
        NodeValue::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            (*number as i64).to_string()
        }
        _ => x.to_json().to_string(),
    }
}

/// A parsed sweep.
struct Axis<'a> {
    /// Name of the x values.
    name: &'a str,
    /// Parameter that takes each of the values; `None` if points are listed.
    parameter: Option<&'a SpecNode>,
    /// Points or values of the sweep; not empty.
    items: &'a [SpecNode],
}

impl<'a> Axis<'a> {
    fn of(sweep: &'a SpecNode, path: &str) -> Result<Self, Diagnostic> {
        let name = sweep.get("name").and_then(SpecNode::text);
        let wrong = |message: &str| Diagnostic::new(sweep.place.clone(), path, message);
        let filled = |list: &'a SpecNode, key: &str, one: &str| match list.items() {
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
    /// Number of points, after a check for repeated x values. An x must not be repeated, because
    /// tables could not distinguish the two points.
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
    fn x<'n>(&self, item: &'n SpecNode) -> Option<&'n SpecNode> {
        match self.parameter {
            Some(_) => Some(item),
            None => item.get("x"),
        }
    }

    /// Adds the x and the assignments of the item with this index to a point.
    fn add_to(&self, point: &mut SweptPoint, place: usize) {
        let item = &self.items[place];
        let x = self.x(item).cloned();
        point.point.extend(x.map(|x| (self.name.to_owned(), x)));
        match self.parameter {
            Some(parameter) => point.settings.push(Assignment {
                key: parameter.text().unwrap_or_default().to_owned(),
                key_place: parameter.place.clone(),
                node: item.clone(),
            }),
            None => {
                let rest = item.entries().iter().filter(|entry| entry.key != "x");
                point.settings.extend(rest.map(Assignment::of));
            }
        }
    }
}
