//! Functions that recurrent ops apply to their gates.

use crate::OpError;

/// A function of one number with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// The hyperbolic tangent
    Tanh,
    /// `max(x, 0)`
    Relu,
    /// `alpha x + beta`
    Affine {
        /// The slope.
        alpha: f32,
        /// The value at 0.
        beta: f32,
    },
    /// `x` where it is at least 0, else `alpha x`
    LeakyRelu {
        /// The slope below 0.
        alpha: f32,
    },
    /// `x` where it is at least `alpha`, else 0
    ThresholdedRelu {
        /// Where `x` begins to pass.
        alpha: f32,
    },
    /// `alpha tanh(beta x)`
    ScaledTanh {
        /// The limit far above 0.
        alpha: f32,
        /// The steepness.
        beta: f32,
    },
    /// `alpha x + beta` within 0 and 1
    HardSigmoid {
        /// The slope before the limits.
        alpha: f32,
        /// The value at 0.
        beta: f32,
    },
    /// `x` where it is at least 0, else `alpha (e^x - 1)`
    Elu {
        /// Minus the limit far below 0.
        alpha: f32,
    },
    /// `x / (1 + |x|)`
    Softsign,
    /// `log(1 + e^x)`
    Softplus,
}

impl Activation {
    /// The function's value in double precision; callers round it once.
    ///
    /// **Edge cases**: NaN stays NaN.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::Relu => {
                if x <= 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Activation::Affine { alpha, beta } => f64::from(alpha) * x + f64::from(beta),
            Activation::LeakyRelu { alpha } => {
                if x < 0.0 {
                    f64::from(alpha) * x
                } else {
                    x
                }
            }
            Activation::ThresholdedRelu { alpha } => {
                if x < f64::from(alpha) {
                    0.0
                } else {
                    x
                }
            }
            Activation::ScaledTanh { alpha, beta } => f64::from(alpha) * (f64::from(beta) * x).tanh(),
            Activation::HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
            Activation::Elu { alpha } => {
                if x < 0.0 {
                    f64::from(alpha) * x.exp_m1()
                } else {
                    x
                }
            }
            Activation::Softsign => {
                if x.is_infinite() {
                    x.signum()
                } else {
                    x / (1.0 + x.abs())
                }
            }
            Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        }
    }

    /// The activations that an ONNX node lists by name (in any case), with parameters taken from the lists in the order
    /// of the functions that have one; a list that ends leaves the rest their defaults.
    ///
    /// **Errors**: a name that is none, more parameters than the functions have.
    pub fn list(names: &[&str], alphas: &[f32], betas: &[f32]) -> Result<Vec<Activation>, OpError> {
        let (mut alphas, mut betas) = (alphas.iter().copied(), betas.iter().copied());
        let list: Result<Vec<_>, OpError> = names
            .iter()
            .map(|&name| {
                let mut alpha = |default| alphas.next().unwrap_or(default);
                let mut beta = |default| betas.next().unwrap_or(default);
                Ok(match name.to_ascii_lowercase().as_str() {
                    "sigmoid" => Activation::Sigmoid,
                    "tanh" => Activation::Tanh,
                    "relu" => Activation::Relu,
                    "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
                    "leakyrelu" => Activation::LeakyRelu { alpha: alpha(0.01) },
                    "thresholdedrelu" => Activation::ThresholdedRelu { alpha: alpha(1.0) },
                    "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
                    "hardsigmoid" => Activation::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) },
                    "elu" => Activation::Elu { alpha: alpha(1.0) },
                    "softsign" => Activation::Softsign,
                    "softplus" => Activation::Softplus,
                    _ => return Err(OpError::value(format!("there is no activation {name:?}"))),
                })
            })
            .collect();
        let list = list?;
        match alphas.next().or_else(|| betas.next()) {
            Some(_) => Err(OpError::value("more parameters of activations are given than the activations take")),
            None => Ok(list),
        }
    }
}

impl std::fmt::Display for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Activation::Affine { alpha, beta } => write!(f, "Affine({alpha:?}, {beta:?})"),
            Activation::LeakyRelu { alpha } => write!(f, "LeakyRelu({alpha:?})"),
            Activation::ThresholdedRelu { alpha } => write!(f, "ThresholdedRelu({alpha:?})"),
            Activation::ScaledTanh { alpha, beta } => write!(f, "ScaledTanh({alpha:?}, {beta:?})"),
            Activation::HardSigmoid { alpha, beta } => write!(f, "HardSigmoid({alpha:?}, {beta:?})"),
            Activation::Elu { alpha } => write!(f, "Elu({alpha:?})"),
            plain => write!(f, "{plain:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_give_their_values() {
        let close = |activation: Activation, x: f64, want: f64| {
            let got = activation.apply(x);
            assert!((got - want).abs() < 1e-12, "{activation} at {x} is {got}, expected {want}");
        };
        close(Activation::Sigmoid, 0.0, 0.5);
        close(Activation::Sigmoid, -1000.0, 0.0);
        close(Activation::Tanh, 0.5, 0.46211715726000975);
        close(Activation::Relu, -1.0, 0.0);
        close(Activation::Affine { alpha: 2.0, beta: 1.0 }, 3.0, 7.0);
        close(Activation::LeakyRelu { alpha: 0.25 }, -2.0, -0.5);
        close(Activation::ThresholdedRelu { alpha: 1.0 }, 0.5, 0.0);
        close(Activation::ThresholdedRelu { alpha: 1.0 }, 1.0, 1.0);
        close(Activation::ScaledTanh { alpha: 2.0, beta: 0.5 }, 1.0, 0.9242343145200195);
        close(Activation::HardSigmoid { alpha: 0.25, beta: 0.5 }, 1.0, 0.75);
        close(Activation::HardSigmoid { alpha: 0.25, beta: 0.5 }, 9.0, 1.0);
        close(Activation::Elu { alpha: 1.0 }, -1.0, -0.6321205588285577);
        close(Activation::Softsign, -3.0, -0.75);
        close(Activation::Softplus, 0.0, std::f64::consts::LN_2);
        close(Activation::Softplus, 800.0, 800.0);
        assert!(Activation::Relu.apply(f64::NAN).is_nan());
    }

    #[test]
    fn parameters_go_to_the_functions_that_take_them() {
        let list = Activation::list(&["Sigmoid", "LeakyRelu", "hardsigmoid"], &[0.1, 0.3], &[0.6]).unwrap();
        let expected = [
            Activation::Sigmoid,
            Activation::LeakyRelu { alpha: 0.1 },
            Activation::HardSigmoid { alpha: 0.3, beta: 0.6 },
        ];
        assert_eq!(list, expected);
        assert_eq!(Activation::list(&["Elu"], &[], &[]).unwrap(), [Activation::Elu { alpha: 1.0 }]);
        assert!(Activation::list(&["Tanh"], &[1.0], &[]).is_err());
        assert!(Activation::list(&["Swish"], &[], &[]).is_err());
    }
}
