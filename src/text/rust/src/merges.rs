//! Which pairs of tokens merge, in which order, and the merging of one word.

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;

const FREE: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    pair: u64,
    rank: u32,
    merged: u32,
}

/// (left, right) -> (rank, merged token); the lowest rank merges first.
pub struct Merges {
    /// Open addressing; at least a third of the slots are free.
    slots: Vec<Slot>,
    /// Odd, by chance: a file cannot choose pairs that meet in one slot.
    factor: u64,
    shift: u32,
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Merges {
    pub fn with_capacity(count: usize) -> Merges {
        let slots = (count + count / 2 + 2).next_power_of_two();
        Merges {
            slots: vec![Slot { pair: FREE, rank: 0, merged: 0 }; slots],
            factor: RandomState::new().hash_one(0u64) | 1,
            shift: 64 - slots.trailing_zeros(),
        }
    }

    fn slot_of(&self, pair: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (pair.wrapping_mul(self.factor) >> self.shift) as usize;
        while self.slots[at].pair != pair && self.slots[at].pair != FREE {
            at = (at + 1) & mask;
        }
        at
    }

    /// A pair that is named again takes its later rank. No more pairs than the capacity, and no id is the largest u32.
    pub fn insert(&mut self, left: u32, right: u32, rank: u32, merged: u32) {
        let pair = key(left, right);
        let at = self.slot_of(pair);
        self.slots[at] = Slot { pair, rank, merged };
    }

    fn find(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let slot = self.slots[self.slot_of(key(left, right))];
        (slot.pair != FREE).then_some((slot.rank, slot.merged))
    }

    /// Merges neighbours, the lowest rank first and of equal ranks the leftmost, until no pair is known.
    pub fn apply(&self, word: &mut Word) {
        let mut queue = BinaryHeap::with_capacity(word.pieces.len());
        let consider = |queue: &mut BinaryHeap<_>, pieces: &[Piece], left: u32, right: u32| {
            if let Some((rank, merged)) = self.find(pieces[left as usize].id, pieces[right as usize].id) {
                queue.push(Reverse((rank, left, merged)));
            }
        };
        for right in 1..word.pieces.len() as u32 {
            consider(&mut queue, &word.pieces, right - 1, right);
        }
        while let Some(Reverse((_, left, merged))) = queue.pop() {
            // What was queued before one of the two merged with another is no longer there.
            let piece = word.pieces[left as usize];
            if piece.bytes == 0 || piece.next == NONE {
                continue;
            }
            let right = word.pieces[piece.next as usize];
            if self.find(piece.id, right.id).is_none_or(|(_, now)| now != merged) {
                continue;
            }
            word.join(left, merged);
            let piece = word.pieces[left as usize];
            if piece.previous != NONE {
                consider(&mut queue, &word.pieces, piece.previous, left);
            }
            if piece.next != NONE {
                consider(&mut queue, &word.pieces, left, piece.next);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Piece {
    id: u32,
    /// Of the text; 0 once it was merged into the one before.
    bytes: u32,
    previous: u32,
    next: u32,
}

/// One word as a chain of tokens.
#[derive(Default)]
pub struct Word {
    pieces: Vec<Piece>,
}

impl Word {
    pub fn with_capacity(count: usize) -> Word {
        Word { pieces: Vec::with_capacity(count) }
    }

    pub fn push(&mut self, id: u32, bytes: u32) {
        let at = self.pieces.len() as u32;
        if let Some(last) = self.pieces.last_mut() {
            last.next = at;
        }
        self.pieces.push(Piece { id, bytes, previous: at.checked_sub(1).unwrap_or(NONE), next: NONE });
    }

    /// The piece at `left` takes in the next one.
    fn join(&mut self, left: u32, merged: u32) {
        let next = self.pieces[left as usize].next;
        let right = std::mem::replace(&mut self.pieces[next as usize].bytes, 0);
        let after = self.pieces[next as usize].next;
        let piece = &mut self.pieces[left as usize];
        piece.id = merged;
        piece.bytes += right;
        piece.next = after;
        if after != NONE {
            self.pieces[after as usize].previous = left;
        }
    }

    /// Tokens with their bytes, in order.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pieces.iter().filter(|piece| piece.bytes != 0).map(|piece| (piece.id, piece.bytes))
    }
}
