//! Who gets the partitions whose preferred worker has no free seat: always the lightest, ties to the smaller
//! index.
//!
//! When all takers weigh the same, the lightest first is one each in turns: everybody at the lowest count
//! gets one, and whoever was one above joins in. That needs no queue, and is most of what a large plan does
//! here.

use super::lightest::Lightest;
use super::problem::Slot;

/// The takers of the next `count` partitions; `left` are the free seats, at least as many.
pub(super) fn refill(slots: &[Slot], seats: &[u64], left: &[u32], count: usize) -> Vec<u32> {
    let is_taker = |&worker: &u32| left[worker as usize] > 0;
    let takers: Vec<u32> = (0..left.len() as u32).filter(is_taker).collect();
    let weight = |worker: u32| slots[worker as usize].weight;
    let is_uniform = takers
        .windows(2)
        .all(|pair| weight(pair[0]) == weight(pair[1]));
    let order = if is_uniform {
        in_turns(seats, left, takers, count)
    } else {
        by_level(slots, seats, left, &takers, count)
    };
    assert_eq!(order.len(), count, "as many seats as partitions");
    order
}

/// Takers of one weight, lowest count first.
fn in_turns(seats: &[u64], left: &[u32], mut waiting: Vec<u32>, count: usize) -> Vec<u32> {
    let owned = |worker: u32| seats[worker as usize] - u64::from(left[worker as usize]);
    // The lowest count last, to be taken from the end.
    waiting.sort_by_key(|&worker| std::cmp::Reverse(owned(worker)));
    let mut order = Vec::with_capacity(count);
    let mut turn: Vec<u32> = Vec::new();
    let mut level = 0;
    while order.len() < count {
        if turn.is_empty() {
            let Some(&lowest) = waiting.last() else {
                break;
            };
            level = owned(lowest);
        }
        while let Some(worker) = waiting.pop_if(|worker| owned(*worker) == level) {
            let at = turn.partition_point(|&other| other < worker);
            turn.insert(at, worker);
        }
        order.extend(turn.iter().take(count - order.len()));
        level += 1;
        turn.retain(|&worker| seats[worker as usize] > level);
    }
    order
}

/// Takers of any weight, lowest count per unit of weight first.
fn by_level(slots: &[Slot], seats: &[u64], left: &[u32], takers: &[u32], count: usize) -> Vec<u32> {
    let mut left = left.to_vec();
    let level = |worker: u32, left: u32| {
        let worker = worker as usize;
        (seats[worker] - u64::from(left)) as f64 / slots[worker].weight
    };
    let mut lightest = Lightest::default();
    for &worker in takers {
        lightest.push(level(worker, left[worker as usize]), worker);
    }
    let mut next = || {
        lightest.next(|worker| {
            let left = &mut left[worker as usize];
            *left -= 1;
            (*left > 0).then(|| level(worker, *left))
        })
    };
    (0..count).map_while(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_the_order_of_levels() {
        let mut rng = fastrand::Rng::with_seed(31);
        for _ in 0..500 {
            let slots = vec![Slot::new(1.0); rng.usize(1..20)];
            let seats: Vec<u64> = slots.iter().map(|_| rng.u64(0..12)).collect();
            let left: Vec<u32> = seats
                .iter()
                .map(|&seats| rng.u32(0..=seats as u32))
                .collect();
            let takers: Vec<u32> = (0..slots.len() as u32)
                .filter(|&worker| left[worker as usize] > 0)
                .collect();
            let count = rng.usize(0..=left.iter().sum::<u32>() as usize);
            let levels = by_level(&slots, &seats, &left, &takers, count);
            assert_eq!(in_turns(&seats, &left, takers, count), levels);
            assert_eq!(levels.len(), count);
        }
    }
}
