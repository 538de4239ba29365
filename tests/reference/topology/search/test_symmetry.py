"""Sets of NUMA nodes up to swapping interchangeable nodes, compared with trying every swap."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from numaproof.reference.topology.search.symmetry import NodeClasses

CLASSES = NodeClasses(((0, 2, 3), (1,), (4, 5)))


def swap_nodes(nodes: int) -> set[int]:
    """Yields a set with its members swapped for interchangeable nodes in every way."""
    ways = [permutations(members) for members in CLASSES.classes]
    return {
        sum(
            1 << other
            for members, images in zip(CLASSES.classes, images_of_all, strict=True)
            for node, other in zip(members, images, strict=True)
            if nodes >> node & 1
        )
        for images_of_all in product(*(list(way) for way in ways))
    }


def test_the_lowest_swap_represents_each_set() -> None:
    representatives = CLASSES.representatives()
    assert len(representatives) == len(set(representatives)) == 4 * 2 * 3
    for nodes in range(1 << 6):
        assert CLASSES.lowest(nodes) in representatives
        assert CLASSES.lowest(nodes) == min(swap_nodes(nodes))


@pytest.mark.parametrize("free", CLASSES.representatives())
def test_the_kept_nodes_are_the_minimum_over_swaps(free: int) -> None:
    for nodes in CLASSES.representatives():
        fewest = min((free & other for other in swap_nodes(nodes)), key=int.bit_count)
        assert CLASSES.smallest_intersection(free, nodes) == CLASSES.lowest(fewest)


def test_weights_are_summed_by_representative_in_order() -> None:
    weights = {0: 5, 2: 5, 3: 5, 1: 7, 4: 11, 5: 11}
    expected = [
        sum(weight for node, weight in weights.items() if nodes >> node & 1)
        for nodes in CLASSES.representatives()
    ]
    assert CLASSES.weigh(weights) == expected
