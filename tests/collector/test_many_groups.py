"""A study of many groups closes their rounds some at a time, so that nobody who uploads waits for all of them."""

from tests.collector.test_gathering import People, Time, begun, stands

from sottovoce.collector.replaying import check_replay
from sottovoce.collector.store import CollectorStore


def test_many_groups_close_their_rounds_some_at_a_time(log: CollectorStore) -> None:
    clock, names = Time(), [str(k) for k in range(40)]
    gathering, people = begun(log, clock, groups=names), People(14)
    for group in range(40):
        gathering.upload(people.upload(gathering, group, 60))
    for _ in range(400):
        gathering.commit()
    assert all(fold.log.rounds == 1 for fold in gathering.folds)  # the clock stands still, and each was looked at
    assert stands(begun(log, clock, groups=names)) == stands(gathering)
    assert check_replay(gathering.study, log)["reports"] == 40 * 60
