//! Output of claims as CSV.

use std::io;

use super::EvaluatedClaim;
use crate::compare::digits;

/// Columns of `claims.csv`, which has one line per finding. `value` is positive if the claim holds
/// (kind `equal`: near 0).
const COLUMNS: [&str; 13] = [
    "claim",
    "published",
    "kind",
    "text",
    "verdict",
    "x_name",
    "x",
    "value",
    "low",
    "high",
    "replications",
    "unit",
    "here",
];

/// Writes `claims.csv`.
///
/// # Errors
/// Any error of the writer.
pub fn write_csv(claims: &[EvaluatedClaim], out: impl io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for claim in claims {
        let place = claim.place.as_deref().unwrap_or_default();
        let head = [
            &claim.id,
            place,
            claim.kind,
            &claim.text,
            claim.verdict.text(),
        ];
        if claim.findings.is_empty() {
            writer.write_record(head.into_iter().chain([""; 8]))?;
        }
        for it in &claim.findings {
            let [low, high] = [it.interval.map(|it| it.low), it.interval.map(|it| it.high)]
                .map(|end| end.map_or(String::new(), |end| digits(end, 6)));
            let (value, count) = (digits(it.value, 6), it.replications.to_string());
            let here = it.verdict.text();
            let rest = [
                &it.x_name,
                &it.x,
                &value,
                &low,
                &high,
                &count,
                &claim.unit,
                here,
            ];
            writer.write_record(head.into_iter().chain(rest))?;
        }
    }
    writer.flush()
}
