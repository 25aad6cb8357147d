//! Checks of reference data: each file in `[reference]` other than the published values must be
//! used by a table, and each file that a table uses must exist.

use crate::checker::Checker;
use crate::spec::Spec;

/// Checks `[reference]` and the key `baseline` of tables.
pub fn check(c: &mut Checker<'_>, spec: &Spec) {
    let known = || spec.reference.baselines.keys().map(String::as_str);
    for (key, file) in spec.reference.all() {
        let path = format!("reference.{key}");
        c.name(&path, key);
        if file.is_empty() {
            c.problem(&path, "found \"\"; a CSV file belongs here");
        }
        let used = |name: &str| spec.tables.iter().any(|it| it.baseline.contains_key(name));
        if key != crate::reference::PUBLISHED && !used(key) {
            let message =
                format!("no table has `baseline.{key}`, so that nothing is compared with it");
            c.not_among(&path, &message, key, [crate::reference::PUBLISHED]);
        }
    }
    for (index, table) in spec.tables.iter().enumerate() {
        for name in table
            .baseline
            .keys()
            .filter(|name| known().all(|key| key != *name))
        {
            let message = format!("found {name:?}, but [reference] has no such file");
            let path = format!("table.{index}.baseline.{name}");
            c.not_among(&path, &message, name, known());
        }
        let own = || table.baseline.keys().map(String::as_str);
        for (row, it) in table.rows.iter().enumerate() {
            for name in it
                .baseline
                .keys()
                .filter(|name| own().all(|key| key != *name))
            {
                let message = format!(
                    "found {name:?}, but the table has no `baseline.{name}` that says under which condition"
                );
                let path = format!("table.{index}.row.{row}.baseline.{name}");
                c.not_among(&path, &message, name, own());
            }
        }
    }
}
