//! Checks of the proxies of nodes.

use crate::checker::Checker;
use crate::vocabulary::Vocabulary;
use crate::world::Node;

/// Checks the proxy of a node at `path`: its kind and its two transports.
pub(super) fn check(c: &mut Checker<'_>, vocabulary: &dyn Vocabulary, node: &Node, path: &str) {
    let Some(proxy) = &node.proxy else {
        return;
    };
    let known = vocabulary.proxies();
    if !known.contains(&proxy.kind.as_str()) {
        let message = format!("found {:?}, which is unknown", proxy.kind);
        c.not_among(&format!("{path}.kind"), &message, &proxy.kind, known);
    }
    if proxy.buffer.0 == 0 {
        let message = "found no buffer; nothing would pass";
        c.problem(&format!("{path}.buffer"), message);
    }
    let kinds = vocabulary.transports();
    for (key, transport) in [
        ("downstream", &proxy.downstream),
        ("upstream", &proxy.upstream),
    ] {
        transport.check(c, &kinds, &format!("{path}.{key}"));
    }
}
