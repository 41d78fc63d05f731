//! The range of every numeric setting. Owns the limits and their wording; combinations of settings are
//! checked by [`TrialConfig::check`](super::TrialConfig::check).

use super::{SettingError, TrialConfig};

/// Refuses a value outside its range.
pub(super) fn check(config: &TrialConfig) -> Result<(), SettingError> {
    let whole = [
        ("depth", config.depth, 0, 64),
        ("hidden_dim", config.hidden_dim, 4, 65_536),
        ("num_heads", config.num_heads, 1, 256),
        ("num_filtrations", config.num_filtrations, 1, 1024),
        ("filtration_hidden", config.filtration_hidden, 1, 65_536),
        ("num_coord_funs", config.num_coord_funs, 1, 1024),
        ("dim0_out_dim", config.dim0_out_dim, 1, 65_536),
        ("dim1_out_dim", config.dim1_out_dim, 1, 65_536),
        ("batch_size", config.batch_size, 1, 1_000_000),
        ("lr_patience", config.lr_patience, 0, 1_000_000),
        ("max_epochs", config.max_epochs, 1, 1_000_000),
    ];
    for (name, value, least, most) in whole {
        if !(least..=most).contains(&value) {
            return Err(SettingError::new(name, format!("{value} is not in {least}..={most}")));
        }
    }
    let real = [
        ("lr", config.lr, 1e-12, 1e3),
        ("lr_min", config.lr_min, 0.0, 1e3),
        ("weight_decay", config.weight_decay, 0.0, 1e3),
        ("dropout_p", config.dropout_p, 0.0, 0.99),
    ];
    for (name, value, least, most) in real {
        if !(least..=most).contains(&value) {
            return Err(SettingError::new(name, format!("{value} is not in {least}..={most}")));
        }
    }
    Ok(())
}
