//! Kinds of the components that specs may name and worlds are built from.

use anabranch_orbit::Constellation;
use anabranch_scenario::Workload;
use anabranch_settings::{KindEntry, KindError, Prepared, Registry};
use anabranch_sim::Rng;
use anabranch_sim::loss::{self, Loss, Traffic};
use anabranch_sim::propagation::{self, Propagation};
use anabranch_sim::queue::{self, QueueDiscipline};
use anabranch_sim::routing::{self, RoutingKind};
use anabranch_sim::workload;

use crate::metric;
use crate::probe;
use crate::transport::{self, Transports};

/// All kinds that specs may name and worlds are built from: those of this project, and those that a
/// program adds.
///
/// ```
/// # use anabranch_engine::kinds::Standard;
/// # use anabranch_settings::{KindEntry, Kinds, kind};
/// # use anabranch_sim::loss::{Loss, NoLoss, Traffic};
/// kind! {
///     /// It has no parameters.
///     struct Mine {}
///     /// No packet is lost.
///     static MINE: KindEntry<Box<dyn Loss>, Traffic> = "mine", |_, _| Ok(Box::new(NoLoss {}));
/// }
/// let kinds = Standard::default().with_loss(&MINE);
/// assert!(kinds.losses.check("mine", &[]).is_ok());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Standard {
    /// Loss models.
    pub losses: Registry<Box<dyn Loss>, Traffic>,
    /// Queue disciplines.
    pub queues: Registry<Box<dyn QueueDiscipline>>,
    /// Propagation models.
    pub propagations: Registry<Box<dyn Propagation>>,
    /// Satellite shells.
    pub shells: Registry<Constellation>,
    /// Routing kinds for moving nodes.
    pub routings: Registry<Box<dyn RoutingKind>>,
    /// Workloads.
    pub workloads: Registry<workload::BoxedWorkload, workload::Context>,
    /// Metrics.
    pub metrics: Registry<metric::BoxedMetric>,
    /// Transports.
    pub transports: Transports,
    /// Probes of flows, in addition to those of transports.
    pub probes: Vec<&'static probe::ProbeEntry>,
    /// Whether links process every packet event by event, even if they could compute its passage
    /// when it enters. The results are the same, but runs take longer.
    pub event_driven: bool,
}

impl Default for Standard {
    /// The kinds of this project, without additions.
    fn default() -> Self {
        Self {
            losses: loss::kinds(),
            queues: queue::kinds(),
            propagations: propagation::kinds(),
            shells: anabranch_orbit::kinds(),
            routings: routing::kinds(),
            workloads: workload::kinds(),
            metrics: metric::kinds(),
            transports: Transports::default(),
            probes: probe::KINDS.to_vec(),
            event_driven: false,
        }
    }
}

impl Standard {
    /// Makes links process packets event by event.
    #[must_use]
    pub fn event_driven(mut self) -> Self {
        self.event_driven = true;
        self
    }

    /// Adds a loss model.
    #[must_use]
    pub fn with_loss(mut self, entry: &'static KindEntry<Box<dyn Loss>, Traffic>) -> Self {
        self.losses = self.losses.with(entry);
        self
    }

    /// Adds a propagation model.
    #[must_use]
    pub fn with_propagation(mut self, entry: &'static KindEntry<Box<dyn Propagation>>) -> Self {
        self.propagations = self.propagations.with(entry);
        self
    }

    /// Adds a shell.
    #[must_use]
    pub fn with_shell(mut self, entry: &'static KindEntry<Constellation>) -> Self {
        self.shells = self.shells.with(entry);
        self
    }

    /// Adds a routing kind for moving nodes.
    #[must_use]
    pub fn with_routing(mut self, entry: &'static KindEntry<Box<dyn RoutingKind>>) -> Self {
        self.routings = self.routings.with(entry);
        self
    }

    /// Adds a workload.
    #[must_use]
    pub fn with_workload(
        mut self,
        entry: &'static KindEntry<workload::BoxedWorkload, workload::Context>,
    ) -> Self {
        self.workloads = self.workloads.with(entry);
        self
    }

    /// Adds a metric.
    #[must_use]
    pub fn with_metric(mut self, entry: &'static KindEntry<metric::BoxedMetric>) -> Self {
        self.metrics = self.metrics.with(entry);
        self
    }

    /// Adds a probe; it replaces a probe of the same name.
    #[must_use]
    pub fn with_probe(mut self, entry: &'static probe::ProbeEntry) -> Self {
        self.probes.retain(|known| known.name != entry.name);
        self.probes.push(entry);
        self
    }

    /// Adds a transport.
    #[must_use]
    pub fn with_transport(mut self, entry: &'static transport::TransportEntry) -> Self {
        self.transports = self.transports.with(entry);
        self
    }

    /// Builds a workload; `packet` is the size in bytes of a message that fills a packet of the
    /// transport.
    ///
    /// # Errors
    /// See [`Registry::build`].
    pub fn workload(
        &self,
        chosen: &Workload,
        rng: Rng,
        packet: usize,
    ) -> Result<workload::BoxedWorkload, KindError> {
        let context = workload::Context::new(rng, packet);
        self.prepare_workload(chosen)?.build(context)
    }

    /// Prepares a workload, which can then be built any number of times.
    ///
    /// # Errors
    /// See [`Registry::prepare`].
    pub fn prepare_workload(
        &self,
        chosen: &Workload,
    ) -> Result<Prepared<workload::BoxedWorkload, workload::Context>, KindError> {
        let values = chosen.values(&self.workloads);
        self.workloads.prepare(&chosen.kind, values)
    }

    /// Adds a queue discipline.
    #[must_use]
    pub fn with_queue(mut self, entry: &'static KindEntry<Box<dyn QueueDiscipline>>) -> Self {
        self.queues = self.queues.with(entry);
        self
    }
}
