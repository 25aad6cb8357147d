//! Implementation of the traits for a boxed base, whose type is known only at run time.

use anabranch_transport::Nanos;

use crate::careful_resume::CarefulResume;
use crate::rsctp::LossAttribution;
use crate::{
    AckSample, Base, CongestionControl, CoupledPaths, Feedback, LossCause, LostPacket,
    WindowControl,
};

impl CongestionControl for Base {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        (**self).on_sent(now, bytes, flightsize);
    }

    fn on_app_limited(&mut self, now: Nanos) {
        (**self).on_app_limited(now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        (**self).on_ack(ack);
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        (**self).on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        (**self).on_loss(now, cause, flightsize);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        (**self).on_packet_lost(lost);
    }

    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        (**self).on_undo(cwnd, ssthresh);
    }

    fn counts_marks(&self) -> bool {
        (**self).counts_marks()
    }

    fn loss_verdict(&self) -> Option<Option<LossAttribution>> {
        (**self).loss_verdict()
    }

    fn wants_rate_samples(&self) -> bool {
        (**self).wants_rate_samples()
    }

    fn limits_itself(&self) -> bool {
        (**self).limits_itself()
    }

    fn on_heartbeat_lost(&mut self, now: Nanos) {
        (**self).on_heartbeat_lost(now);
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        (**self).on_feedback(now, feedback);
    }

    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        (**self).on_coupled_paths(coupled);
    }

    fn between_losses(&self) -> u64 {
        (**self).between_losses()
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        (**self).on_idle(now, idle_for, rto);
    }

    fn on_mtu(&mut self, segment: u64) {
        (**self).on_mtu(segment);
    }

    fn override_cwnd(&mut self, cwnd: f64) {
        (**self).override_cwnd(cwnd);
    }

    fn override_ssthresh(&mut self, ssthresh: f64) {
        (**self).override_ssthresh(ssthresh);
    }

    fn careful_resume(&self) -> Option<&CarefulResume> {
        (**self).careful_resume()
    }

    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        (**self).careful_resume_mut()
    }

    fn cwnd(&self) -> u64 {
        (**self).cwnd()
    }

    fn cwnd_exact(&self) -> f64 {
        (**self).cwnd_exact()
    }

    fn ssthresh(&self) -> u64 {
        (**self).ssthresh()
    }

    fn partial_bytes_acked(&self) -> u64 {
        (**self).partial_bytes_acked()
    }

    fn pacing_rate(&self) -> Option<f64> {
        (**self).pacing_rate()
    }

    fn wants_latest_rtt(&self) -> bool {
        (**self).wants_latest_rtt()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}

impl WindowControl for Base {
    fn unit(&self) -> u64 {
        (**self).unit()
    }

    fn in_slow_start(&self) -> bool {
        (**self).in_slow_start()
    }

    fn least_ssthresh(&self) -> u64 {
        (**self).least_ssthresh()
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        (**self).set_cwnd(cwnd);
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        (**self).set_ssthresh(ssthresh);
    }
}

#[cfg(test)]
mod tests {
    /// Names of the methods in the block of `text` that begins with `head`.
    fn methods<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
        let block = text.split(head).nth(1).expect("it is there");
        let block = block.split("\n}\n").next().expect("it ends");
        let lines = block.lines().filter_map(|it| it.strip_prefix("    fn "));
        let mut names: Vec<_> = lines.filter_map(|it| it.split('(').next()).collect();
        names.sort_unstable();
        names
    }

    /// Checks that every method is forwarded. A forgotten method would silently use the default of
    /// the trait, and not the method of the base.
    #[test]
    fn every_method_is_handed_on() {
        let (contract, here) = (include_str!("lib.rs"), include_str!("base_control.rs"));
        let all = methods(contract, "\npub trait CongestionControl");
        assert!(all.len() > 20, "{all:?}");
        assert_eq!(methods(here, "\nimpl CongestionControl for Base"), all);
    }

    /// Checks that controllers that wrap another one either implement each method or forward it by
    /// `rest_of_inner`.
    #[test]
    fn every_wrapper_hands_every_method_on() {
        let contract = include_str!("lib.rs");
        let all = methods(contract, "\npub trait CongestionControl");
        let shared = contract.split("\nmacro_rules! rest_of_inner").nth(1);
        let shared = shared.and_then(|it| it.split("\n}\n").next());
        let lines = shared.expect("the macro").lines();
        let shared = lines.filter_map(|it| it.trim().strip_prefix("fn ")?.split('(').next());
        let shared: Vec<_> = shared.collect();
        for (file, name) in [
            (include_str!("careful_resume.rs"), "CarefulResume"),
            (include_str!("rate_limited.rs"), "RateLimitedIncrease"),
        ] {
            let mut here = methods(file, &format!("\nimpl CongestionControl for {name}"));
            here.extend(&shared);
            here.sort_unstable();
            assert_eq!(here, all, "{name}");
        }
    }
}
