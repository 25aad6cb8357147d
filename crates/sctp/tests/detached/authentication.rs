//! Detached associations that use AUTH (RFC 4895).

use anabranch_sctp::{Authentication, ChunkTypes, Config, SharedKeys};
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::kind;

use super::Net;

/// AUTH is off when the association is created and detached, and on with a key when the peer
/// restarts: the association has the key of the endpoint.
#[test]
fn a_restart_after_auth_was_enabled_has_the_keys_of_the_endpoint() {
    let enable = |it: &mut Config| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(&[kind::DATA, kind::COOKIE_ECHO]));
        it.auth_keys = SharedKeys::only(1, "shared");
    };
    let mut net = Net::new();
    net.up(2, 1);
    net.server.change_config(enable).expect("valid");
    net.config = Config::default().with(enable);
    let (client, id) = net.up(2, 1);
    assert_eq!(net.only_worker().output, ["restarted"]);
    net.send(client, id, "new".into());
    net.run_for(SECOND);
    assert_eq!(net.read(client, id), ["new"]);
    assert_eq!(net.only_worker().discarded, []);
}
