// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed access to the pinned maps.

use crate::KernelError;
use crate::places::Places;
use crate::pod::{Pod, value_of};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use libc::EIO;
use zerocopy::IntoBytes;

/// Values that one call of the kernel reads.
const BATCH: u32 = 1024;

/// A pinned map with keys of `u32`.
pub(crate) struct Table(MapHandle);

impl Table {
    /// Opens a map by the name that maps.h gives it.
    pub(crate) fn open(places: &Places, name: &str) -> Result<Table, KernelError> {
        let map = MapHandle::from_pinned_path(places.pin(name))
            .map_err(KernelError::bpf(format!("open the map {name}")))?;
        Ok(Table(map))
    }

    pub(crate) fn handle(&self) -> &MapHandle {
        &self.0
    }

    pub(crate) fn get<T: Pod>(&self, index: u32) -> Result<T, KernelError> {
        self.get_bytes(index)
            .map(|bytes| value_of(&bytes).unwrap_or_default())
    }

    pub(crate) fn get_bytes(&self, index: u32) -> Result<Vec<u8>, KernelError> {
        let bytes = self
            .0
            .lookup(index.as_bytes(), MapFlags::ANY)
            .map_err(KernelError::bpf(format!("read {index} of {}", self.name())))?;
        Ok(bytes.unwrap_or_default())
    }

    /// The values of an array, in the order of their indices; many are read by one call of the kernel.
    pub(crate) fn all<T: Pod>(&self) -> Result<Vec<T>, KernelError> {
        let read = || KernelError::bpf(format!("read {}", self.name()));
        let pairs = self.0.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
        let pairs = pairs.map_err(read())?;
        let values: Vec<T> = pairs
            .map(|(_, bytes)| value_of(&bytes).unwrap_or_default())
            .collect();
        // The iterator ends where the kernel refuses, and does not say so.
        match values.len() == self.0.max_entries() as usize {
            true => Ok(values),
            false => Err(read()(libbpf_rs::Error::from_raw_os_error(EIO))),
        }
    }

    pub(crate) fn set<T: Pod>(&self, index: u32, value: &T) -> Result<(), KernelError> {
        self.set_bytes(index, value.as_bytes())
    }

    pub(crate) fn set_bytes(&self, index: u32, value: &[u8]) -> Result<(), KernelError> {
        self.0
            .update(index.as_bytes(), value, MapFlags::ANY)
            .map_err(KernelError::bpf(format!(
                "write {index} of {}",
                self.name()
            )))
    }

    /// The sum over all processors of a per-processor counter.
    pub(crate) fn sum(&self, index: u32) -> Result<u64, KernelError> {
        let values = self
            .0
            .lookup_percpu(index.as_bytes(), MapFlags::ANY)
            .map_err(KernelError::bpf(format!("read {index} of {}", self.name())))?;
        Ok(values
            .unwrap_or_default()
            .iter()
            .filter_map(|v| value_of::<u64>(v))
            .sum())
    }

    fn name(&self) -> String {
        self.0.name().to_string_lossy().into_owned()
    }
}
