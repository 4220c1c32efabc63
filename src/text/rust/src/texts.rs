//! The texts of a vocabulary in one piece of memory, found by id and by text.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::border::Failure;

/// Text `id` of all; ids count from 0. Where two ids have the same text, the first has it and the other has none.
pub struct Texts {
    bytes: String,
    ends: Vec<u32>,
    /// Open addressing: half a hash and the id + 1; 0 is free. At least a third of them are.
    slots: Vec<u64>,
    /// Ids without a text, ascending.
    without: Vec<u32>,
    hasher: RandomState,
}

const ID_BITS: u32 = 32;

impl Texts {
    /// For at most `count` texts.
    pub fn with_capacity(count: usize, bytes: usize) -> Texts {
        Texts {
            bytes: String::with_capacity(bytes),
            ends: Vec::with_capacity(count),
            slots: vec![0; (count + count / 2 + 1).next_power_of_two()],
            without: Vec::new(),
            hasher: RandomState::new(),
        }
    }

    /// The text of the next id, `None` for an id that no token has.
    pub fn push(&mut self, text: Option<&str>) -> Result<(), Failure> {
        let id = self.ends.len() as u32;
        let end = u32::try_from(self.bytes.len() + text.map_or(0, str::len));
        self.ends.push(end.map_err(|_| Failure::corrupt("the tokens take more than 4 GiB"))?);
        self.bytes.push_str(text.unwrap_or_default());
        let Some(text) = text else {
            self.without.push(id);
            return Ok(());
        };
        let hash = self.hasher.hash_one(text);
        match self.probe(hash, text) {
            Ok(_) => self.without.push(id),
            Err(free) => self.slots[free] = (hash >> ID_BITS << ID_BITS) | (u64::from(id) + 1),
        }
        Ok(())
    }

    /// The id of the text, or the free slot where the search ended.
    fn probe(&self, hash: u64, text: &str) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let id = (slot as u32).wrapping_sub(1);
            if (slot ^ hash) >> ID_BITS == 0 && self.at(id as usize) == text {
                return Ok(id);
            }
            at = (at + 1) & mask;
        }
    }

    fn at(&self, id: usize) -> &str {
        let begin = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.bytes[begin..self.ends[id] as usize]
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        self.probe(self.hasher.hash_one(text), text).ok()
    }

    pub fn get(&self, id: u32) -> Option<&str> {
        let is_there = (id as usize) < self.ends.len() && self.without.binary_search(&id).is_err();
        is_there.then(|| self.at(id as usize))
    }

    /// How many ids have a text.
    pub fn len(&self) -> usize {
        self.ends.len() - self.without.len()
    }

    /// Every id that has a text, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.ends.len() as u32).filter_map(|id| self.get(id).map(|text| (id, text)))
    }
}
