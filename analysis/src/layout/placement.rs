//! Layouts about where TOGL stands: data sets and positions as rows, the variants of TOGL as columns. A variant
//! without a named embedding chooses it per fold.

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::layout::named::{HOW_CHOSEN, Names, Settings, chosen_embedding, find, part, remarks, renamed};
use crate::published::{self, same_dataset};
use crate::table::{Row, Table, TableColumn, Winners};

fn variant(settings: &Settings<'_>) -> String {
    let fixed = if settings.fixed { "static - " } else { "" };
    let embedding = if settings.deepset { "interaction" } else { "no interaction" };
    format!("{} ({fixed}{embedding})", settings.printed())
}

fn general(settings: &Settings<'_>) -> String {
    format!("{}{}", settings.printed(), if settings.fixed { " (static)" } else { "" })
}

/// Makes the layout of the published table called `name`.
pub fn by_position(frame: &FoldFrame, name: &str) -> Result<Table> {
    let named = |method: fn(&Settings<'_>) -> String| {
        renamed(frame, move |settings| {
            let dataset = published::datasets(name).find(|known| same_dataset(known, settings.dataset))?;
            let method = method(settings);
            let known = settings.togl && published::methods(name).any(|known| known == method);
            let position = settings.layers_before();
            let wanted = known && published::positions(name).any(|known| known == position);
            wanted.then(|| Names {
                method,
                dataset: dataset.to_owned(),
                position: Some(position.to_string()),
            })
        })
    };
    let groups = ["dataset", "method", "togl_position", "split"];
    let chosen = chosen_embedding(&named(general)?, &groups)?;
    let rows = ["dataset", "togl_position"];
    let parts = [part(&named(variant)?, name, &rows, "method", &[])?, chosen.part(name, &rows, "method")?];
    let parts: Vec<Table> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return Err(Error::Empty {
            origin: format!("the layout {name} (networks with TOGL at its positions)"),
        });
    }
    Ok(assemble(name, &parts))
}

fn assemble(name: &str, parts: &[Table]) -> Table {
    let mut table = parts[0].clone();
    let methods: Vec<&str> = published::methods(name).collect();
    let mut labels: Vec<Vec<String>> =
        parts.iter().flat_map(|part| &part.rows).map(|row| row.labels.clone()).collect();
    labels.sort_by_key(|labels| {
        let dataset = published::datasets(name).position(|known| known == labels[0]);
        (dataset, labels[1].parse::<u64>().unwrap_or(u64::MAX))
    });
    labels.dedup();
    let cells = |labels: &[String]| methods.iter().map(|method| find(parts, labels, method)).collect();
    table.rows =
        labels.into_iter().map(|labels| Row { cells: cells(&labels), labels, printed_as: None }).collect();
    let column = |label: &&str| TableColumn {
        label: (*label).to_owned(),
        group: None,
        printed_as: Some((*label).to_owned()),
    };
    table.columns = methods.iter().map(column).collect();
    table.mark_best(Winners::PerRow);
    table.remarks = remarks(parts);
    table.remarks.push(HOW_CHOSEN.to_owned());
    table.reword();
    table
}
