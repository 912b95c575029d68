"""Defects of subscriptions with a URL, for the cases of resources."""

from dataclasses import replace

from support.resources.defects import answers, changed, found_by

from siprtmp.edge.branches import url_posters
from siprtmp.web.branches.subscription_branch import SubscriptionBranch
from siprtmp.web.resources import deliveries
from siprtmp.web.resources.deliveries import Deliveries
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.tree import Tree
from siprtmp.web.resources.url_subscriptions import UrlSubscriptions


@found_by("user_may_give_a_url", "secret_that_was_made_is_told_once")
def tells_other_secrets(patch):
    def wrong(reply, request):
        said = reply.entity.data if request.url and reply.entity else None
        if said is None:
            return reply
        return replace(reply, entity=Entity(JSON, said | {"secret": "wrong", "url": ""}))

    answers(patch, wrong)


@found_by("same_url_again_has_200")
def makes_one_each_time(patch):
    patch.setattr(UrlSubscriptions, "found", lambda *_: None)


@found_by("anonymous_may_give_no_url")
def takes_urls_of_anybody(patch):
    subscribe = Tree.subscribe_url
    patch.setattr(
        Tree,
        "subscribe_url",
        lambda self, at, asker, *more, **said: subscribe(
            self, at, replace(asker, user=asker.user or "nobody"), *more, **said
        ),
    )


@found_by("host_that_is_not_listed_is_refused")
def lists_all_hosts(patch):
    patch.setattr(url_posters.UrlPosters, "check", lambda *_: None)
    patch.setattr(url_posters, "post_to", lambda *_: "")


@found_by("transient_url_is_refused")
def makes_all_urls_persistent(patch):
    subscribe = Tree.subscribe_url
    patch.setattr(
        Tree,
        "subscribe_url",
        lambda *args, is_persistent: subscribe(*args, is_persistent=True),
    )


@found_by("redirection_is_not_followed")
def follows_redirections(patch):
    def wrong(reason, url, *more):
        return post(f"{url}/elsewhere", *more) if "307" in reason else reason

    post = url_posters.post_to
    changed(patch, url_posters, "post_to", wrong)


@found_by("redirection_is_not_followed", "what_is_refused_is_posted_again")
def tries_once(patch):
    answered = Deliveries.answered
    patch.setattr(Deliveries, "answered", lambda self, _, now: answered(self, "", now))


@found_by("change_is_posted")
def tells_no_time(patch):
    patch.setattr(url_posters.UrlPosters, "stamp", lambda self: None)


@found_by(
    *("same_url_again_has_200", "post_is_signed_with_the_chosen_secret"),
    *("secret_that_was_made_is_told_once",),
)
def signs_the_time_alone(patch):
    signature = deliveries.signature
    patch.setattr(deliveries, "signature", lambda secret, unix, _: signature(secret, unix, b""))


@found_by("url_is_listed_for_its_owner")
def lists_urls_for_all(patch):
    patch.setattr(SubscriptionBranch, "may", lambda *_: True)


@found_by(
    *("delete_ends_what_is_posted", "unsubscribe_ends_what_is_posted"),
    *("answer_of_410_ends_what_is_posted",),
)
def never_ends_urls(patch):
    patch.setattr(UrlSubscriptions, "end", lambda *_: None)
