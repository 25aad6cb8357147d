//! Optional INIT and INIT ACK parameters that need no negotiation (RFC 5061 §4.2.4, §4.2.6).

use std::net::IpAddr;

use anabranch_wire::extension::InitParameter;
use anabranch_wire::parameter::kind;
use anabranch_wire::tlv::{Tlv, TlvError, TlvItem, TlvWriter};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::address::{put_address, take_address};
use crate::config::Config;
use crate::extensions::{ASCONF, Extensions};

/// Bits in a cookie that show which parameters follow.
const ADAPTATION: u8 = 1;
const PRIMARY: u8 = 2;

/// Optional parameters of the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalParameters {
    /// Adaptation layer indication.
    pub(crate) adaptation: Option<u32>,
    /// Address to which the peer wants data to be sent (Set Primary).
    pub(crate) primary: Option<IpAddr>,
}

impl OptionalParameters {
    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Processes a parameter of a packet from `source`. Returns `false` if the parameter is not an
    /// optional parameter, or belongs to an extension that is not in `ours`. A repeated parameter
    /// replaces the earlier one.
    pub(crate) fn take(
        &mut self,
        tlv: &Tlv,
        source: IpAddr,
        ours: Extensions,
    ) -> Result<bool, TlvError> {
        let of_asconf = tlv.kind == kind::SET_PRIMARY_ADDRESS && ours.has(&ASCONF);
        if tlv.kind != kind::ADAPTATION_LAYER && !of_asconf {
            return Ok(false);
        }
        match InitParameter::decode(tlv.clone()) {
            Ok(InitParameter::AdaptationLayer(indication)) => self.adaptation = Some(indication),
            Ok(InitParameter::SetPrimary { address, .. }) => {
                let address = address.to_canonical();
                self.primary = Some(if address.is_unspecified() {
                    source
                } else {
                    address
                });
            }
            Ok(_) => {}
            // An address of an unsupported family is ignored.
            Err(TlvError::NoAddress { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Discards the requested primary address unless it is in `addresses`, the complete list of the
    /// peer's addresses.
    pub(crate) fn settle(&mut self, addresses: &[IpAddr]) {
        self.primary = self.primary.filter(|it| addresses.contains(it));
    }

    /// Adds the parameters that `config` requests to an INIT or INIT ACK with the extensions
    /// `offered`.
    pub(crate) fn push(config: &Config, offered: Extensions, parameters: &mut TlvWriter) {
        let adaptation = config.adaptation_layer.map(InitParameter::AdaptationLayer);
        let primary = config.preferred_address.filter(|_| offered.has(&ASCONF));
        let primary = primary.map(|address| InitParameter::SetPrimary {
            correlation_id: 0,
            address,
        });
        for said in adaptation.into_iter().chain(primary) {
            if let Ok(parameter) = said.to_parameter() {
                let _ = parameters.push(&parameter);
            }
        }
    }

    /// Encodes the parameters for a cookie.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        let bit = |said: bool, bit: u8| if said { bit } else { 0 };
        out.put_u8(
            bit(self.adaptation.is_some(), ADAPTATION) | bit(self.primary.is_some(), PRIMARY),
        );
        if let Some(indication) = self.adaptation {
            out.put_u32(indication);
        }
        if let Some(address) = self.primary {
            put_address(out, address);
        }
    }

    /// Decodes the output of [`OptionalParameters::encode`].
    pub(crate) fn decode(body: &mut Bytes) -> Option<Self> {
        let said = body.try_get_u8().ok()?;
        let mut remarks = Self::default();
        if said & ADAPTATION != 0 {
            remarks.adaptation = Some(body.try_get_u32().ok()?);
        }
        if said & PRIMARY != 0 {
            remarks.primary = Some(take_address(body)?);
        }
        Some(remarks)
    }
}
