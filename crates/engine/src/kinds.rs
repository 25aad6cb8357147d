//! The kinds of things that worlds are built from.

use anabranch_settings::{Entry, Registry};
use anabranch_sim::loss::{self, Loss, Traffic};
use anabranch_sim::propagation::{self, Propagation};
use anabranch_sim::queue::{self, QueueDiscipline};

/// The kinds of this project, and those that a program adds: what specs may name, and what worlds are built from.
///
/// ```
/// # use anabranch_engine::kinds::Standard;
/// # use anabranch_settings::{Entry, Kinds, Variant};
/// # use anabranch_sim::loss::{Loss, Nothing, Traffic};
/// static MINE: Entry<Box<dyn Loss>, Traffic> = Entry {
///     variant: Variant { name: "mine", about: " Loses nothing.", parameters: &[] },
///     build: |_, _| Ok(Box::new(Nothing)),
/// };
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
    /// Propagations.
    pub propagations: Registry<Box<dyn Propagation>>,
    /// Decides the passage of every packet step by step, also where a link knows it when the packet comes: what arrives is
    /// the same, and takes longer to compute.
    pub stepwise: bool,
}

impl Default for Standard {
    /// The kinds of this project.
    fn default() -> Self {
        Self {
            losses: loss::kinds(),
            queues: queue::kinds(),
            propagations: propagation::kinds(),
            stepwise: false,
        }
    }
}

impl Standard {
    /// With links that are decided step by step.
    #[must_use]
    pub fn stepwise(mut self) -> Self {
        self.stepwise = true;
        self
    }

    /// With one more loss model.
    #[must_use]
    pub fn with_loss(mut self, entry: &'static Entry<Box<dyn Loss>, Traffic>) -> Self {
        self.losses = self.losses.with(entry);
        self
    }

    /// With one more propagation.
    #[must_use]
    pub fn with_propagation(mut self, entry: &'static Entry<Box<dyn Propagation>>) -> Self {
        self.propagations = self.propagations.with(entry);
        self
    }

    /// With one more queue discipline.
    #[must_use]
    pub fn with_queue(mut self, entry: &'static Entry<Box<dyn QueueDiscipline>>) -> Self {
        self.queues = self.queues.with(entry);
        self
    }
}
