//! A deterministic network: nodes, links, queues, losses, workloads, capture
