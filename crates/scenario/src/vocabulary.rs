//! What a spec may name beside the grammar's own words: profiles, switches and algorithms of transports, reasons for which
//! links drop packets, numbers of radio media. Whoever runs specs knows them; the grammar only asks.

use crate::checker::Checker;
use crate::flow::{Flow, Protocol};
use crate::spec::Spec;
use crate::wifi::Wifi;

/// The kinds that a program can run. Each check notes what is wrong at a path of keys below which the value stands.
pub trait Vocabulary: Sync {
    /// Names of the reasons for which a link drops packets.
    fn drop_reasons(&self) -> Vec<&'static str>;

    /// Checks a transport's profile, switches and values.
    fn check_transport(&self, c: &mut Checker<'_>, transport: &Protocol, path: &str);

    /// Bytes of the receive buffer of a flow over SCTP: no message is larger.
    fn receive_buffer(&self, flow: &Flow) -> u64;

    /// Checks the numbers of a cell's medium against each other and those of its set.
    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str);

    /// Checks what only a world that is built shows. It is asked last, of a spec in which nothing else is wrong.
    fn check_world(&self, c: &mut Checker<'_>, spec: &Spec);
}
