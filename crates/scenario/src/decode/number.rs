//! Decoding of numbers without a unit, and of expressions in their place.

use anabranch_settings::expression::{Shown, constant, is_compound};
use serde::de::{self, Deserializer, Visitor};

use super::{Decoder, Fault};
use crate::tree::{NodeValue, SpecNode};

impl Decoder<'_> {
    /// Reads a number, or an expression without parameters, such as `"1 / 3"`.
    pub(super) fn deserialize_number<'de, V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Some(text) = self.node.text().filter(|text| is_compound(text)) else {
            return self.deserialize_any(visitor);
        };
        let shown = constant(text).map_err(|fault| fault.message);
        let value = match shown.and_then(|value| value.show()) {
            Ok(Shown::Whole(number)) => NodeValue::Integer(number),
            Ok(Shown::Real(number)) => NodeValue::Float(number),
            Ok(Shown::Text(value)) => {
                let message = format!("found {text:?}, which is {value}; expected a number");
                let fault: Fault = de::Error::custom(message);
                return Err(fault.at(self.node, &self.path, self.context));
            }
            Err(message) => {
                let fault: Fault = de::Error::custom(message);
                return Err(fault.at(self.node, &self.path, self.context));
            }
        };
        let node = SpecNode {
            place: self.node.place.clone(),
            value,
        };
        let (original, path, context) = (self.node, self.path.clone(), self.context);
        let computed = Decoder {
            node: &node,
            path: self.path,
            context,
        };
        computed.deserialize_any(visitor).map_err(|mut fault| {
            // The computed node does not outlive this call, so the original node is reported and
            // removed.
            fault.node = None;
            fault.at(original, &path, context)
        })
    }
}
