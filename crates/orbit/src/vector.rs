//! Vectors: points and directions in space.

/// A vector in Earth-fixed or inertial coordinates, km.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Vector {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Vector {
    pub fn minus(self, other: Self) -> Self {
        Self {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }

    pub fn times(self, factor: f64) -> Self {
        Self {
            x: self.x * factor,
            y: self.y * factor,
            z: self.z * factor,
        }
    }

    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    pub fn distance(self, other: Self) -> f64 {
        self.minus(other).length()
    }

    /// Rotates the vector about the z axis by `angle` radians.
    pub fn turned(self, angle: f64) -> Self {
        let (sin, cos) = libm::sincos(angle);
        Self {
            x: self.x * cos - self.y * sin,
            y: self.x * sin + self.y * cos,
            z: self.z,
        }
    }

    /// Distance between the Earth's centre and the line segment to `other`, km.
    pub fn clearance(self, other: Self) -> f64 {
        let along = other.minus(self);
        let square = along.dot(along);
        if square == 0.0 {
            return self.length();
        }
        let part = (-self.dot(along) / square).clamp(0.0, 1.0);
        Self {
            x: self.x + part * along.x,
            y: self.y + part * along.y,
            z: self.z + part * along.z,
        }
        .length()
    }
}
