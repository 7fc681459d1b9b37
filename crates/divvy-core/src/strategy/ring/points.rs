//! Sorted points with an index.
//!
//! The circle is cut into buckets of equal length, about one for every two
//! points, and the points lie in the order of their positions. The bucket of a
//! position tells where to look, so a lookup reads two neighbouring entries of
//! the index and a point or two, in place of a binary search through all. What
//! the bucket says of a position need not be stored again: with 2^16 buckets
//! and more, 16 bits are left of it. A point is one number, the rest of its
//! position above its worker, so that whoever finds it has read its worker too.

/// The points of a ring.
#[derive(Debug, Clone)]
pub(super) enum Points {
    /// Few points, or more workers than 16 bits can number.
    Wide(Sorted<u64>),
    /// Four bytes a point.
    Narrow(Sorted<u32>),
}

/// From this many points on, buckets leave 16 bits of a position.
const NARROW_POINTS_MIN: usize = 1 << 15;
const NARROW_BUCKET_BITS_MIN: u32 = 16;

impl Points {
    /// The points that `positions` gives, `count` pairs of position and
    /// worker, in the order of the workers. It is called twice.
    pub(super) fn new<I: Iterator<Item = (u32, u32)>>(
        count: usize,
        workers: usize,
        positions: impl Fn() -> I,
    ) -> Self {
        // A bucket for every two points or so.
        let bits = count.max(4).ilog2() - 1;
        if count >= NARROW_POINTS_MIN && workers <= 1 << 16 {
            let bits = bits.max(NARROW_BUCKET_BITS_MIN);
            Self::Narrow(Sorted::new(count, bits, positions))
        } else {
            Self::Wide(Sorted::new(count, bits, positions))
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Wide(sorted) => sorted.len(),
            Self::Narrow(sorted) => sorted.len(),
        }
    }

    /// The worker of the first point at or after `position`, all around.
    pub(super) fn owner_at(&self, position: u32) -> u32 {
        match self {
            Self::Wide(sorted) => sorted.owner_at(position),
            Self::Narrow(sorted) => sorted.owner_at(position),
        }
    }

    /// The number of the first point at or after `position`, all around.
    pub(super) fn first_at(&self, position: u32) -> usize {
        match self {
            Self::Wide(sorted) => sorted.first_at(position),
            Self::Narrow(sorted) => sorted.first_at(position),
        }
    }

    /// The point with this number, as position and worker.
    pub(super) fn point(&self, number: usize) -> (u32, u32) {
        match self {
            Self::Wide(sorted) => sorted.point(number),
            Self::Narrow(sorted) => sorted.point(number),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Wide(sorted) => sorted.heap_bytes(),
            Self::Narrow(sorted) => sorted.heap_bytes(),
        }
    }
}

/// The lower part of a position, and below it a worker.
pub(super) trait Point: Copy {
    const ZERO: Self;
    fn new(low: u32, worker: u32) -> Self;
    fn low(self) -> u32;
    fn worker(self) -> u32;
}

impl Point for u32 {
    const ZERO: Self = 0;

    fn new(low: u32, worker: u32) -> Self {
        low << 16 | worker
    }

    fn low(self) -> u32 {
        self >> 16
    }

    fn worker(self) -> u32 {
        self & 0xFFFF
    }
}

impl Point for u64 {
    const ZERO: Self = 0;

    fn new(low: u32, worker: u32) -> Self {
        Self::from(low) << 32 | Self::from(worker)
    }

    fn low(self) -> u32 {
        (self >> 32) as u32
    }

    fn worker(self) -> u32 {
        self as u32
    }
}

/// Points in the order of position, then of worker.
#[derive(Debug, Clone)]
pub(super) struct Sorted<P> {
    /// By bucket, the number of its first point; one entry more than buckets.
    starts: Vec<u32>,
    /// Which bits of a position its bucket does not tell.
    low_bits: u32,
    points: Vec<P>,
}

impl<P: Point> Sorted<P> {
    /// Counts, then places, then sorts the two or three of each bucket.
    fn new<I: Iterator<Item = (u32, u32)>>(
        count: usize,
        bucket_bits: u32,
        positions: impl Fn() -> I,
    ) -> Self {
        let low_bits = u32::BITS - bucket_bits;
        let mut starts = vec![0u32; (1 << bucket_bits) + 1];
        for (position, _) in positions() {
            starts[(position >> low_bits) as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        assert_eq!(sum as usize, count, "as many points as were announced");
        let mut points = vec![P::ZERO; count];
        for (position, worker) in positions() {
            let start = &mut starts[(position >> low_bits) as usize];
            points[*start as usize] = P::new(position & low_mask(low_bits), worker);
            *start += 1;
        }
        // Placing has moved every start to the end of its bucket.
        starts.rotate_right(1);
        starts[0] = 0;
        for bounds in starts.windows(2) {
            sort_few(&mut points[bounds[0] as usize..bounds[1] as usize]);
        }
        Self {
            starts,
            low_bits,
            points,
        }
    }

    fn len(&self) -> usize {
        self.points.len()
    }

    fn owner_at(&self, position: u32) -> u32 {
        self.points[self.first_at(position)].worker()
    }

    fn first_at(&self, position: u32) -> usize {
        let bucket = (position >> self.low_bits) as usize;
        let low = position & low_mask(self.low_bits);
        let (start, end) = (
            self.starts[bucket] as usize,
            self.starts[bucket + 1] as usize,
        );
        let before = self.points[start..end]
            .iter()
            .take_while(|point| point.low() < low);
        // Past the bucket the next point is that of the next bucket that has one.
        let first = start + before.count();
        if first == self.len() { 0 } else { first }
    }

    fn point(&self, number: usize) -> (u32, u32) {
        let bucket = self
            .starts
            .partition_point(|&start| start as usize <= number)
            - 1;
        let point = self.points[number];
        let position = (bucket as u32) << self.low_bits | point.low();
        (position, point.worker())
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.points[..])
    }
}

fn low_mask(low_bits: u32) -> u32 {
    ((1u64 << low_bits) - 1) as u32
}

/// Sorts a few by position; those of one position stay in their order.
fn sort_few<P: Point>(points: &mut [P]) {
    for end in 1..points.len() {
        let point = points[end];
        let mut place = end;
        while place > 0 && points[place - 1].low() > point.low() {
            points[place] = points[place - 1];
            place -= 1;
        }
        points[place] = point;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    fn check(count: usize, workers: u32, position: impl Fn(u64) -> u32 + Copy) {
        let pairs = || (0..count as u64).map(move |n| (position(n), n as u32 % workers));
        let mut sorted: Vec<(u32, u32)> = pairs().collect();
        sorted.sort_by_key(|&(position, _)| position);
        let points = Points::new(count, workers as usize, pairs);
        assert_eq!(points.len(), count);
        let step = (count / 500).max(1);
        for number in (0..count).step_by(step) {
            assert_eq!(points.point(number), sorted[number]);
        }
        let probes = (0..2000).map(|n| mix64(n + 77) as u32);
        let exact = sorted.iter().step_by(step).map(|&(position, _)| position);
        for probe in probes.chain(exact).chain([0, 1, u32::MAX]) {
            let first = sorted.partition_point(|&(position, _)| position < probe) % count;
            assert_eq!(points.first_at(probe), first, "{count} points, at {probe}");
            assert_eq!(points.owner_at(probe), sorted[first].1);
        }
    }

    #[test]
    fn lookups_are_those_of_a_sorted_list() {
        let random = |n: u64| mix64(n) as u32;
        for count in [
            1,
            2,
            3,
            4,
            7,
            150,
            450,
            5000,
            (1 << 15) - 1,
            1 << 15,
            200_000,
        ] {
            check(count, 100, random);
        }
        check(100_000, 70_000, random);
    }

    #[test]
    fn crowded_and_equal_positions_are_found_too() {
        check(300, 7, |_| 5);
        check(300, 7, |n| (n % 3) as u32);
        check(300, 7, |n| u32::MAX - (n % 5) as u32);
        check(40_000, 9, |n| (mix64(n) as u32) & 0xFFFF_0000);
    }

    #[test]
    fn a_large_ring_takes_less_than_six_bytes_a_point() {
        let points = Points::new(150_000, 1000, || (0..150_000).map(|n| (mix64(n) as u32, 0)));
        assert!(points.heap_bytes() < 6 * 150_000, "{}", points.heap_bytes());
    }
}
