use super::*;
use crate::kind_families::{Loss, Queue};
use crate::tree::SpecNode;

fn read<F: KindFamily>(text: &str) -> Result<KindChoice<F>, String> {
    let tree = SpecNode::parse(text).expect("TOML");
    let value = tree.get("it").expect("`it`");
    crate::decode::decode(value, "it").map_err(|problems| problems[0].message.clone())
}

#[test]
fn a_table_is_read_and_written_as_it_was() {
    let text = "it = { model = \"bernoulli\", probability = 0.01, position = \"after-queue\" }";
    let loss: Loss = read(text).unwrap();
    assert_eq!(loss.kind, "bernoulli");
    let wanted = Loss::new("bernoulli")
        .with("probability", 0.01)
        .with("position", "after-queue");
    assert_eq!(loss, wanted);
    let json = serde_json::to_value(&loss).unwrap();
    let place = json!({ "model": "bernoulli", "probability": 0.01, "position": "after-queue" });
    assert_eq!(json, place);
    assert_eq!(serde_json::from_value::<Loss>(json).unwrap(), loss);
}

#[test]
fn text_is_a_name_or_what_the_family_makes_of_it() {
    assert_eq!(
        read::<crate::kind_families::QueueDiscipline>("it = \"codel\"").unwrap(),
        Queue::new("codel")
    );
    let tail: Queue = read("it = \"64 KiB\"").unwrap();
    assert_eq!(tail, Queue::new("drop-tail").with("limit", "64 KiB"));
    let again = serde_json::to_value(&tail).unwrap();
    assert_eq!(serde_json::from_value::<Queue>(again).unwrap(), tail);
    let none: Loss = read("it = \"none\"").unwrap();
    assert_eq!(none, Loss::new("none"));
}

#[test]
fn a_value_that_is_no_choice_is_reported_when_it_is_read() {
    let error = read::<crate::kind_families::LossModel>("it = 7").unwrap_err();
    assert_eq!(
        error,
        "found 7; expected a table with the key `model`, such as { model = \"bernoulli\", probability = 0.01 }, or a name in quotes"
    );
    let error = read::<crate::kind_families::LossModel>("it = { model = 7 }").unwrap_err();
    assert_eq!(
        error,
        "found 7 as `model`; expected the name of a loss model in quotes"
    );
    let error = read::<crate::kind_families::QueueDiscipline>("it = \"0 B\"").unwrap_err();
    assert!(error.contains("at least 1 packet"), "{error}");
}

#[test]
fn a_delay_is_a_time_or_steps_or_a_kind() {
    use crate::kind_families::{Propagation, PropagationModel};
    let fixed: Propagation = read("it = \"5 ms\"").unwrap();
    assert_eq!(
        fixed,
        Propagation::new("deterministic").with("delay", "5 ms")
    );
    let steps: Propagation = read("it = { steps = [[\"0 s\", \"5 ms\"]] }").unwrap();
    let table = json!({ "steps": [["0 s", "5 ms"]] });
    assert_eq!(
        steps,
        Propagation::new("deterministic").with("delay", table)
    );
    let jitter: Propagation = read("it = { kind = \"jitter\", allow_reordering = true }").unwrap();
    assert!(jitter.allow_reordering() && !steps.allow_reordering());
    let error = read::<PropagationModel>("it = \"soon\"").unwrap_err();
    assert!(error.contains("write a time as \"250 ms\""), "{error}");
}
