# SPDX-License-Identifier: Apache-2.0
"""What a subscription missed, by the numbers of the middleware."""

from oxygen_ros.nodes.middleware.sequence_gaps import SequenceGaps


def test_what_the_middleware_replaced_is_counted_and_a_new_publisher_is_no_gap():
    gaps = SequenceGaps()
    for number in (1, 2, 5, 6, 1, 2, 4):  # two missing, a publisher anew, one missing
        gaps.take({'publication_sequence_number': number})
    gaps.take({})
    assert gaps.missed == 3
