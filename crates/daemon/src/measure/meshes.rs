// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /v1/measure/mesh`: what hosts that all test one another measured last, as the archive has it.

use super::Measurements;
use crate::answer::AnswerTo;
use crate::archive::Archive;
use crate::archive::answers::of_store;
use axum::Json;
use axum::extract::State;
use fatpath_api::endpoint::GetMeshes;
use fatpath_archive::Kind;
use fatpath_archive::store::{Query, Store, StoreError};
use fatpath_clock::now_us;
use fatpath_measure::{Grid, Mesh};
use std::sync::Arc;

pub(crate) async fn meshes(
    State(measurements): State<Arc<Measurements>>,
    State(archive): State<Arc<Archive>>,
) -> AnswerTo<GetMeshes> {
    let meshes = measurements.plan().meshes;
    if meshes.is_empty() {
        return Ok(Json(Vec::new()));
    }
    of_store(&archive, move |store| {
        let grids = meshes.iter();
        let grids = grids.map(|mesh| Ok(mesh_grid(mesh, store, now_us())?.answer()));
        grids.collect()
    })
    .await
}

/// The newest result of each pair, of three times the interval of the tests.
///
/// # Errors
/// When the store cannot be read.
pub fn mesh_grid<'m>(
    mesh: &'m Mesh,
    store: &dyn Store,
    now_us: i64,
) -> Result<Grid<'m>, StoreError> {
    let tests = Query {
        kinds: vec![Kind::Test],
        ..Query::between(now_us - 3 * mesh.test.every_us as i64, now_us)
    };
    let mut grid = Grid::of(mesh);
    for record in store.query(&tests)? {
        // Another fatpath may have other fields.
        if let Ok(outcome) = serde_json::from_str(&record.event.body) {
            grid.take(&record.origin.host, outcome);
        }
    }
    Ok(grid)
}
