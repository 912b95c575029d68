"""Each case of resources finds a tree that is wrong in just that: ours, with a defect.

What is broken is a part of the tree, of its messages or of its listener.  Only the cases that a
defect should fail are run against it.
"""

import json
from dataclasses import replace
from itertools import count

import pytest
from support.resources import url_defects
from support.resources.conformed import WHOLE, conformed
from support.resources.defects import DEFECTS, NAMES, answers, changed, found_by, tells

from p2psip.errors import RemoteError
from rtclab.conform.resource import SUITE
from rtclab.conform.runner import Outcome, run
from siprtmp.edge.web import tree_side
from siprtmp.edge.web.tree_access import TreeAccess
from siprtmp.web.resources import http, merge_patch, messages, path, session, tree
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.hearing import Hearing
from siprtmp.web.resources.mode import Standing
from siprtmp.web.resources.nodes import Access, Node, Nodes
from siprtmp.web.resources.subscriptions import Subscriptions
from siprtmp.web.resources.tree import Tree

# -- refusals -----------------------------------------------------------------------------


@found_by(
    *("put_below_nothing_is_refused", "get_of_nothing_has_404", "unknown_view_is_refused"),
    *("post_to_nothing_has_404", "patch_of_nothing_has_404", "delete_of_nothing_has_404"),
    *("delete_ends_it", "event_to_nothing_has_404", "put_by_an_old_tag_has_412"),
    *("patch_by_an_old_tag_has_412", "any_tag_of_nothing_has_412", "larger_entity_has_413"),
    *("longer_name_is_refused", "empty_name_is_refused", "path_begins_with_a_slash"),
    *("user_without_rights_has_403", "subscribe_has_405"),
    *("unknown_member_is_refused", "put_without_an_entity_is_refused", "transient_is_refused"),
    *("octets_that_are_no_base64_are_refused", "member_of_another_type_is_refused"),
    *("request_without_a_path_is_refused", "unknown_method_is_refused", "wrong_proof_has_401"),
    *("what_is_no_request_is_refused", "body_that_is_no_json_is_refused", "dots_are_refused"),
    *("patch_of_another_type_is_refused", "page_of_another_site_is_refused"),
    *("page_of_another_site_gets_no_websocket", "wrong_proof_gets_no_websocket"),
    *("unsubscribe_without_a_subscription_is_refused", "subscribe_to_nothing_has_404"),
    *("too_many_requests_have_429", "misspelled_condition_is_refused"),
    *("persistent_below_transient_is_refused", "malformed_mode_is_refused"),
    *("host_that_is_not_listed_is_refused", "transient_url_is_refused"),
)
def refuses_by_500(patch):
    refuse, refusal = http.refuse, session.refusal
    patch.setattr(
        http, "refuse", lambda error, *more: refuse(RemoteError(error.reason, 500), *more)
    )
    patch.setattr(session, "refusal", lambda error: refusal(RemoteError(error.reason, 500)))


@found_by("refusal_has_a_reason")
def gives_no_reason(patch):
    patch.setattr(session, "refusal", lambda error: {"status": error.status})


# -- methods ------------------------------------------------------------------------------


@found_by(
    *("put_makes_with_201", "put_replaces_with_200", "values_come_back_as_they_were"),
    *("octets_come_back_with_their_type", "children_are_named", "post_tells_the_name"),
    *("posts_have_names_of_their_own", "patch_adds_and_replaces", "patch_of_null_removes"),
    *("patch_of_a_list_replaces", "event_changes_nothing", "name_has_128_octets"),
    *("names_differ_by_octets", "nothing_is_unescaped", "both_ways_show_one_tree"),
    *("path_is_unescaped_once", "location_is_the_new_path", "entity_has_64_kib"),
    *("owner_of_what_is_above_is_self", "names_of_what_may_be_read_are_listed"),
    *("delete_by_an_old_tag_has_412", "only_what_is_new_is_made", "access_is_told"),
    *("owner_is_told", "anonymous_owns_by_its_connection"),
)
def reads_something_else(patch):
    def wrong(reply, request):
        other = Entity(JSON, ["z"] if request.view != "access" else {"owner": "z"})
        return replace(reply, entity=other) if request.method == "GET" else reply

    answers(patch, wrong)


@found_by("put_makes_with_201", "post_tells_the_name")
def answers_by_200(patch):
    answers(patch, lambda reply, _: replace(reply, status=200) if reply.status == 201 else reply)


@found_by("location_is_the_new_path")
def locates_what_is_above(patch):
    answers(
        patch,
        lambda reply, ask: replace(reply, path=ask.path) if ask.method == "POST" else reply,
    )


@found_by("posts_have_names_of_their_own")
def posts_to_one_name(patch):
    post = Tree.post

    def wrong(self, where, entity, asker, wishes):
        try:
            self.put((*where, "same"), entity, asker, wishes)
        except RemoteError:
            return post(self, where, entity, asker, wishes)
        return "same"

    patch.setattr(Tree, "post", wrong)


@found_by("patch_adds_and_replaces", "patch_is_told_as_put")
def patches_by_replacing(patch):
    patch.setattr(tree, "merged", lambda target, change: change)


@found_by("patch_of_null_removes")
def keeps_null(patch):
    patch.setattr(
        tree,
        "merged",
        lambda target, change: {**target, **change} if isinstance(change, dict) else change,
    )


@found_by("patch_of_a_list_replaces")
def patches_objects_alone(patch):
    patch.setattr(
        tree,
        "merged",
        lambda target, change: (
            merge_patch.merged(target, change) if isinstance(change, dict) else target
        ),
    )


@found_by("delete_takes_all_below")
def keeps_what_was_below(patch):
    kept = {}
    remove, add = Nodes.remove, Nodes.add

    def forgets(self, where):
        kept[where] = dict(self.find(where).children)
        remove(self, where)

    def remembers(self, where, node):
        add(self, where, node)
        node.children.update(kept.get(where, {}))

    patch.setattr(Nodes, "remove", forgets)
    patch.setattr(Nodes, "add", remembers)


@found_by("event_changes_nothing")
def events_are_kept(patch):
    notify = Tree.notify

    def wrong(self, where, entity, asker):
        notify(self, where, entity, asker)
        self._nodes.change(where, self._nodes.find(where), entity)

    patch.setattr(Tree, "notify", wrong)


# -- conditions ---------------------------------------------------------------------------


@found_by(
    *("tag_changes_with_what_is_held", "put_by_an_old_tag_has_412", "patch_by_an_old_tag_has_412"),
    "delete_by_an_old_tag_has_412",
)
def has_one_tag(patch):
    patch.setattr(Entity, "tag", property(lambda self: '"same"'))


@found_by(
    *("get_and_put_have_the_same_tag", "right_tag_lets_it_be", "tag_that_must_not_be_has_412"),
)
def has_a_new_tag_each_time(patch):
    numbers = count()
    patch.setattr(Entity, "tag", property(lambda self: f'"{next(numbers)}"'))


@found_by("any_tag_of_nothing_has_412", "only_what_is_new_is_made", "put_by_an_old_tag_has_412")
def minds_no_conditions(patch):
    patch.setattr(tree, "_check_conditions", lambda *_: None)


@found_by("any_tag_lets_be_what_is_there", "right_tag_lets_it_be", "only_what_is_new_is_made")
def meets_no_conditions(patch):
    def wrong(before, wishes):
        if wishes.if_match or wishes.if_none_match:
            raise RemoteError("No", 412)

    patch.setattr(tree, "_check_conditions", wrong)


# -- names --------------------------------------------------------------------------------


def reads_paths(patch, read):
    """Have paths read by this."""
    for module in (http, messages):
        patch.setattr(module, "read_path", read)


@found_by(
    *("dots_are_refused", "empty_name_is_refused", "longer_name_is_refused"),
    *("unprintable_name_is_refused", "path_begins_with_a_slash", "path_has_8_names"),
)
def takes_any_path(patch):
    patch.setattr(tree, "check_name", lambda name: None)
    patch.delitem(messages.MEMBERS["resource"], "pattern")
    reads_paths(patch, lambda text: tuple(str(text).strip("/").split("/")) if text else ())


@found_by("name_has_128_octets", "path_has_8_names")
def has_short_paths(patch):
    patch.setattr(path, "MAX_NAME", 100)
    patch.setattr(path, "MAX_DEPTH", 5)


@found_by("names_differ_by_octets")
def minds_no_case(patch):
    reads_paths(patch, lambda text: path.read_path(text.lower()))


@found_by("nothing_is_unescaped", "path_is_unescaped_once")
def unescapes_too_much(patch):
    reads_paths(patch, lambda text: path.read_path(text.replace("%41", "A")))


# -- rights -------------------------------------------------------------------------------


@found_by(
    *("user_without_rights_has_403", "anonymous_without_rights_has_401"),
    *("right_to_create_allows_that", "right_to_read_allows_that", "right_to_update_allows_that"),
    *("right_to_write_allows_that", "right_to_subscribe_allows_that"),
    *("owner_has_the_rights_of_self_alone", "group_has_the_rights_of_the_group_alone"),
    *("user_has_not_the_rights_of_anonymous", "anonymous_owns_by_its_connection"),
    *("mode_is_that_of_what_is_above", "null_gives_a_mode_back"),
    *("what_is_hidden_is_refused_if_absent_too", "names_of_what_may_be_read_are_listed"),
    *("subscriber_without_the_right_is_not_told", "what_it_holds_is_told_to_readers"),
    *("hidden_child_is_not_told", "what_was_hidden_is_not_told_later"),
)
def allows_all(patch):
    patch.setattr(Access, "allows", lambda *_: True)


@found_by(
    *("right_to_create_allows_that", "right_to_read_allows_that", "right_to_update_allows_that"),
    *("right_to_write_allows_that", "right_to_subscribe_allows_that"),
    *("owner_of_what_is_above_is_self",),
)
def allows_owners_alone(patch):
    def allows(self, asker, right):
        is_open = str(self.mode) == "cruws" * 4 and len(self.owners) == 1
        return not self.owners or is_open or self.owners[-1][0] == asker.user

    patch.setattr(Access, "allows", allows)


@found_by("others_give_no_rights", "others_make_nothing_persistent", "others_take_nothing_over")
def takes_all_for_owners(patch):
    patch.setattr(Access, "kind", lambda *_: Standing.SELF)
    patch.setattr(Node, "is_of", lambda *_: True)


@found_by("malformed_mode_is_refused")
def reads_any_mode(patch):
    parse = tree.Mode.parse

    def wrong(text):
        try:
            return parse(text)
        except RemoteError:
            return parse("cruws" * 4)

    patch.setattr(tree.Mode, "parse", wrong)
    patch.delitem(messages.MEMBERS["mode"], "pattern")


# -- messages -----------------------------------------------------------------------------


@found_by(
    *("unknown_member_is_refused", "misspelled_condition_is_refused"),
    *("member_of_another_type_is_refused",),
)
def minds_no_members(patch):
    patch.setattr(messages, "check", lambda *_: None)


@found_by("event_may_have_data")
def knows_no_data(patch):
    tells(patch, lambda said, _: {k.replace("data", "entity"): v for k, v in said.items()})


@found_by("id_is_repeated", "answers_have_the_order_of_the_requests")
def repeats_no_text(patch):
    patch.setattr(session, "_short", lambda identifier: None)


@found_by("request_without_an_id_has_none")
def makes_an_id(patch):
    patch.setattr(session, "_short", lambda identifier: 7)


@found_by("answers_have_the_order_of_the_requests")
def answers_the_last_first(patch):
    changed(patch, session.ResourceSession, "take", lambda texts, _: texts[::-1])


@found_by("subprotocol_is_chosen")
def chooses_no_subprotocol(patch):
    accept = tree_side.WebSocket.accept
    patch.setattr(tree_side.WebSocket, "accept", lambda headers, at, _: accept(headers, at))


@found_by("other_subprotocols_are_refused")
def minds_no_subprotocol(patch):
    accept = tree_side.WebSocket.accept

    def wrong(headers, at, subprotocol):
        return accept(headers, at, subprotocol) or accept(headers, at)

    patch.setattr(tree_side.WebSocket, "accept", wrong)


@found_by("page_of_another_site_gets_no_websocket", "page_of_another_site_is_refused")
def welcomes_all_pages(patch):
    patch.setattr(TreeAccess, "check_page", lambda *_: "")


@found_by("wrong_proof_gets_no_websocket", "wrong_proof_has_401")
def takes_strangers_for_nobody(patch):
    judge = TreeAccess.judge

    def wrong(self, environ, *more):
        try:
            return judge(self, environ, *more)
        except RemoteError:
            return judge(self, {"REMOTE_ADDR": "127.0.0.1"}, *more)

    patch.setattr(TreeAccess, "judge", wrong)


# -- plain HTTP ---------------------------------------------------------------------------


@found_by("transient_is_refused")
def makes_all_persistent(patch):
    add = Tree._add
    patch.setattr(
        Tree,
        "_add",
        lambda self, at, entity, asker, wishes, method: add(
            self, at, entity, asker, replace(wishes, persistent=True), method
        ),
    )


@found_by("patch_of_another_type_is_refused", "body_that_is_no_json_is_refused")
def minds_no_types(patch):
    patch.setattr(http, "is_json", lambda kind: True)

    def read(kind, octets):
        try:
            return Entity(kind, json.loads(octets))
        except (ValueError, RecursionError):
            return Entity(kind, "none")

    patch.setattr(Entity, "read", read)


# -- subscriptions ------------------------------------------------------------------------


@found_by(
    *("put_is_told", "patch_is_told_as_put", "post_is_told_as_a_new_child"),
    *("changes_of_a_child_are_told", "event_is_told", "octets_are_told_as_base64"),
    *("all_subscribers_are_told", "what_it_holds_is_told_to_readers"),
    *("missed_events_follow_the_answer", "nothing_missed_is_nothing_told"),
)
def tells_too_much(patch):
    tells(patch, lambda said, event: said | {"by": event.origin})


@found_by(
    *("delete_is_told", "transient_ends_with_a_closed_connection"),
    *("transient_ends_with_a_lost_connection", "transient_ends_with_a_reset_connection"),
)
def tells_other_words(patch):
    tells(patch, lambda said, _: said | {"notify": f"{said['notify']}D"})


@found_by("changes_of_a_child_are_told", "post_is_told_as_a_new_child")
def names_no_child(patch):
    tells(
        patch,
        lambda said, _: {k: v for k, v in said.items() if k not in [each.value for each in Change]},
    )


@found_by("numbers_grow", "missed_events_follow_the_answer")
def numbers_nothing(patch):
    tells(patch, lambda said, _: said | {"seq": 0})


@found_by("what_is_further_below_is_not_told")
def tells_of_all_below(patch):
    tell = Tree._tell

    def wrong(self, resource, *more):
        tell(self, resource, *more)
        if len(resource) == 2:
            tell(self, resource[:1], *more)

    patch.setattr(Tree, "_tell", wrong)


@found_by("own_changes_are_not_told")
def tells_of_its_own(patch):
    tell = Tree._tell
    patch.setattr(Tree, "_tell", lambda self, *more: tell(self, *more[:-1], ""))


@found_by("all_subscribers_are_told")
def tells_twice(patch):
    changed(patch, Subscriptions, "of", lambda askers, *_: askers * 2)


@found_by("unsubscribe_ends_it", "unsubscribe_without_a_subscription_is_refused")
def never_unsubscribes(patch):
    patch.setattr(Tree, "unsubscribe", lambda *_: None)


@found_by("subscription_ends_with_its_resource")
def subscriptions_stay(patch):
    patch.setattr(Subscriptions, "ended", lambda *_: None)


@found_by("subscribe_tells_number_and_epoch", "number_of_another_epoch_has_missed")
def has_no_epoch(patch):
    answers(patch, lambda reply, _: replace(reply, more=reply.more[:1]))


@found_by("missed_events_follow_the_answer")
def forgets_what_was_missed(patch):
    changed(patch, Subscriptions, "since", lambda *_: iter(()))


@found_by("number_of_another_epoch_has_missed", "number_to_come_has_missed")
def misses_nothing(patch):
    answers(patch, lambda reply, _: replace(reply, more=reply.more[:2]))


@found_by("nothing_missed_is_nothing_told")
def tells_the_last_again(patch):
    since = Subscriptions.since
    patch.setattr(Subscriptions, "since", lambda self, last, at: since(self, last - 1, at))


@found_by("what_was_hidden_is_not_told_later")
def judges_the_past_by_today(patch):
    patch.setattr(tree, "Hearing", lambda event, *at: Hearing(replace(event, access=None), *at))


@found_by("slow_client_is_told_missed")
def leaves_out_in_silence(patch):
    take = session.ResourceSession.take

    def wrong(self):
        self._missed = False
        return take(self)

    patch.setattr(session.ResourceSession, "take", wrong)


# -- lifetimes and limits ------------------------------------------------------------------


@found_by(
    *("transient_ends_with_a_closed_connection", "transient_ends_with_a_lost_connection"),
    *("transient_ends_with_a_reset_connection", "persistent_stays", "resource_becomes_persistent"),
    *("owner_takes_over_what_it_replaces", "others_take_nothing_over"),
)
def nothing_is_gone(patch):
    patch.setattr(Tree, "gone", lambda *_: None)


@found_by("persistent_stays", "access_is_told")
def nothing_is_persistent(patch):
    nothing = property(lambda self: None)
    patch.setattr(tree.Wishes, "persistent", nothing)


@found_by("persistent_below_transient_is_refused")
def takes_persistent_for_transient(patch):
    def wrong(original):
        def make(self, at, entity, asker, wishes, *more):
            try:
                original(self, at, entity, asker, wishes, *more)
            except RemoteError:
                original(self, at, entity, asker, replace(wishes, persistent=None), *more)

        return make

    for name in ("_add", "_replace"):
        patch.setattr(Tree, name, wrong(getattr(Tree, name)))


@found_by("resource_becomes_persistent", "owner_takes_over_what_it_replaces")
def takes_nothing_over(patch):
    patch.setattr(Nodes, "take", lambda *_: None)


@found_by("entity_has_64_kib", "too_much_of_one_has_507")
def has_small_entities(patch):
    patch.setattr(Tree, "_check_size", small)


def small(self, entity):
    if len(entity.octets) > 1000:
        raise RemoteError("Too large", 413)


@found_by("larger_entity_has_413", "resource_grows_no_further")
def has_large_entities(patch):
    patch.setattr(Tree, "_check_size", lambda *_: None)


@found_by("too_many_requests_have_429")
def has_patience(patch):
    patch.setattr(session, "BURST", 100_000)
    patch.setattr(session, "RATE", 100_000.0)


@found_by("too_many_subscriptions_have_507", "too_much_of_one_has_507")
def has_its_limits_by_503(patch):
    original = session.refusal

    def wrong(error):
        return original(RemoteError(error.reason, 503) if error.status == 507 else error)

    patch.setattr(session, "refusal", wrong)


assert url_defects  # those of subscriptions with a URL, which stand in a file of their own


def judge(defect):
    """The results of the cases that should find a defect."""
    breaks, names = DEFECTS[defect]
    cases = [each for each in SUITE.cases if each.name in names]
    with pytest.MonkeyPatch.context() as patch, conformed() as target:
        breaks(patch)
        return run(WHOLE, target, cases, 2)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_wrong_tree_is_found(defect):
    unseen = {
        each.case.name: (each.outcome, each.got)
        for each in judge(defect)
        if each.outcome is not Outcome.UNMET
    }
    assert unseen == {}


def test_each_case_has_a_tree_that_it_finds():
    assert NAMES - {name for _, names in DEFECTS.values() for name in names} == set()
