//! Records copy and clearing of pages.

use super::fixture::*;
use crate::cpu::isa::Isa;
use crate::request::*;

/// A cache of 3 layers, every record different.
fn numbered(page_size: usize) -> Cache {
    let mut cache = Cache::poisoned(page_size, 4, 3);
    let mut random = Random(1);
    for layer in 0..3 {
        for slot in 0..4 * page_size {
            cache.put(layer, slot, &Record::quantised(&random.normals(512), &random.normals(64)));
        }
    }
    cache
}

fn request(cache: &Cache, first_layer: usize, num_layers: usize, from: &[i64], to: &[i64]) -> RecordsCopyRequest {
    RecordsCopyRequest {
        cache: cache.view,
        first_layer,
        num_layers,
        num_records: from.len() as i64,
        src_slots: from.as_ptr(),
        dst_slots: to.as_ptr(),
    }
}

#[test]
fn records_move_between_slots_of_any_row_in_the_layers_asked_for() {
    for page_size in [8, 24, 64] {
        let (mut cache, mut wanted) = (numbered(page_size), numbered(page_size));
        let from = [0, 3, -1, 5, page_size as i64 + 2];
        let to = [2 * page_size as i64 + 1, 6, 7, -1, 4];
        for layer in 1..3 {
            for (&from, &to) in from.iter().zip(&to) {
                if from >= 0 && to >= 0 {
                    let record = wanted.record(layer, from as usize);
                    wanted.put(layer, to as usize, &record);
                }
            }
        }
        cpu(2, Isa::detect()).records_copy(&request(&cache, 1, 2, &from, &to)).unwrap();
        assert!(cache.bytes() == wanted.bytes());

        let end = cache.view.num_slots();
        let error = cpu(2, Isa::detect()).records_copy(&request(&cache, 0, 3, &[0, 1], &[2, end])).unwrap_err();
        assert!(error.message.starts_with(&format!("dst_slots[1] is {end}, not below {end}")), "{}", error.message);
        let error = cpu(2, Isa::detect()).records_copy(&request(&cache, 0, 3, &[end, 1], &[2, 3])).unwrap_err();
        assert!(error.message.starts_with(&format!("src_slots[0] is {end}, not below {end}")), "{}", error.message);
        assert!(cache.bytes() == wanted.bytes());
        cache.bytes_mut().fill(0);
    }
}

#[test]
fn clearing_leaves_the_bytes_between_pages_alone() {
    let cache = Cache::poisoned(16, 5, 3);
    cpu(2, Isa::detect()).clear_pages(&cache.view).unwrap();
    let (page, stride) = (644 * 16, cache.view.page_stride as usize);
    for (i, &byte) in cache.bytes().iter().enumerate() {
        let in_layer = i % cache.view.layer_stride as usize;
        let in_page = in_layer < 5 * stride && in_layer % stride < page;
        assert_eq!(byte, if in_page { 0 } else { GAP }, "{i}");
    }
}
