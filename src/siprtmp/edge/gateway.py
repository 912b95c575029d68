"""The gateway process: the SIP side, the RTMP side and the operator's ways in, on one event loop.

Own design: sockets are opened first, so that the machines know their addresses; the SIP stack and
the RTMP applications are built and connected next, and listening begins last.  Everything runs in
the hub; a call has no greenlet of its own.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from p2psip.net.clock import monotonic
from p2psip.stack.routing import is_loopback
from rtmplite.net.addresses import written
from rtmplite.net.secret_files import is_open_to_all
from rtmplite.net.server.settings import AccessSettings, TlsSettings
from rtmplite.rtmp.netconnection import Application
from siprtmp import __version__
from siprtmp.calls.access.admission import Admission
from siprtmp.calls.call import Call
from siprtmp.calls.call_app import CallApplication
from siprtmp.edge.branches.audit_file import AuditFile
from siprtmp.edge.branches.branch_side import BranchSide
from siprtmp.edge.branches.capture_tasks import LIMIT
from siprtmp.edge.branches.url_posters import UrlPosters
from siprtmp.edge.call_records import CallRecords
from siprtmp.edge.control_socket import Control
from siprtmp.edge.media_side import video_transcoding
from siprtmp.edge.metrics import CallTotals, LoopLag, page
from siprtmp.edge.overview import Overview, call_row
from siprtmp.edge.packet_capture import PacketCapture
from siprtmp.edge.rtmp_side import RtmpSide
from siprtmp.edge.sip_side import SipSide
from siprtmp.edge.state_folder import StateFolder
from siprtmp.edge.status import CachedFigures, ProcessFigures, StatusServer, WebApplication
from siprtmp.edge.web.ice_links import ice_servers
from siprtmp.edge.web.status_access import StatusAccess
from siprtmp.edge.web.tree_access import Identifies, TreeAccess, load_tokens
from siprtmp.edge.web.tree_side import TreeSide
from siprtmp.edge.web.tree_store import open_log, open_store
from siprtmp.edge.web.user_service import UserService
from siprtmp.edge.webrtc_side import WebRtcSide
from siprtmp.edge.whip_of_all import WhipOfAll
from siprtmp.edge.whole import Whole, WholeOverview
from siprtmp.edge.workers.names_of_all import NamesOfAll
from siprtmp.edge.workers.place import WorkerPlace
from siprtmp.edge.workers.sip_sockets import naming
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.operation.build import build
from siprtmp.operation.logs import Log
from siprtmp.settings.check import load_credentials, load_users
from siprtmp.settings.load import load_file
from siprtmp.settings.table import Settings
from siprtmp.settings.types import OFF
from siprtmp.web.branches.media_branch import MediaBranch
from siprtmp.web.branches.roles import Roles
from siprtmp.web.browser_sessions import LIVE
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.told_hosts import ToldHosts
from siprtmp.web.resources.tree import NO_TREE, Tree
from siprtmp.web.static_pages import StaticPages
from siprtmp.web.whip import WhipApplication

if TYPE_CHECKING:
    from siprtmp.edge.web.tree_redis import RedisLog

BROWSER_APPS: Final = (LIVE, "call", "room", "mixed")  # that have WHIP and WHEP
CURE: Final = "chmod o-r"  # for a file with a secret


class Gateway:
    """All that one process serves.

    `start` opens the listeners; `stop` ends calls and connections properly.  The settings are taken
    apart here: each part of the gateway gets its own.  With a `place` this process is one of
    several that serve together.
    """

    def __init__(self, settings: Settings, place: WorkerPlace | None = None) -> None:
        of_rtmp = settings.for_rtmp
        if place is not None:
            settings = _part(settings, place)
            of_rtmp = replace(settings.for_rtmp, is_local=of_rtmp.is_local)
        self.settings, self.log, self._place = settings, Log("siprtmp"), place
        process, anonymous = settings.process, settings.access.allow_anonymous
        path = process.capture
        self._capture = None if path is None else PacketCapture(path, self.log)
        self.state = StateFolder(process.state) if process.state is not None else None
        users, credentials = load_users(settings.access), load_credentials(settings.access)
        self._users = users
        self.admission = Admission(anonymous, users, credentials)
        self.rtmp = RtmpSide(of_rtmp, self.log, self.admission, place)
        self._http: StatusServer | None = None
        self.tree: TreeSide | None = None
        self._posters: UrlPosters | None = None
        self._tree_log: RedisLog | None = None
        self._control: Control | None = None
        self.webrtc: WebRtcSide | None = None
        self.branches: BranchSide | None = None
        self._status_access = StatusAccess.of(
            settings.listeners.http, settings.calls.domain, anonymous, self.admission
        )
        self.sip: SipSide | None = None
        if settings.calls.mix_calls:
            _load_decoder()
        self._process = ProcessFigures()
        self.totals, self._lag = CallTotals(), LoopLag()
        team = self.rtmp.team
        self._whole = None if team is None else Whole(team, self.status, self.totals, self._lag)
        records = process.call_records
        self._records = None if records is None else CallRecords(records, self.log)

    def start(self) -> None:
        """Open the configured listeners.  Raises ConfigError for an address that can't be had."""
        settings, at = self.settings, self.settings.listeners
        warn_of_readers(settings.access, settings.tls, settings.source, self.log)
        if at.sip:
            with naming("--sip", *at.sip):
                self.sip = SipSide(
                    *(settings.for_sip, self._users, self.admission, self.log),
                    *(self.rtmp.registry, self.rtmp.team),
                )
            core = self.sip.core
            core.on_end = self._call_ended
            if self._records is not None:
                core.context.on_begin = core.on_up = self._records.begin
            for name, application in core.applications.items():
                self.rtmp.add(name, self._shared(application))
        self.rtmp.start()
        if self.sip is not None:
            self.sip.core.routes.library = self.rtmp.library
        self._follow_calls()
        if at.webrtc is not None:
            with naming("--webrtc", at.webrtc):
                self.webrtc = WebRtcSide(
                    at.webrtc,
                    settings.network.external_ip,
                    settings.media,
                    self.rtmp.registry,
                    self.log,
                    self.rtmp.application,
                    self._transcoders(),
                )
            if self.sip is not None:
                self.sip.media.browsers = self.webrtc
        if at.http is not None:
            self._open_tree()
            with naming("--http", at.http):
                figures = CachedFigures(self.of_all)
                opened = {} if self._place is None else self._place.opened
                self._http = StatusServer(
                    opened.get("http", at.http),
                    figures,
                    self.rtmp.live,
                    self._status_access,
                    self.log,
                    lambda: self._metrics(figures()),
                    self._web(),
                )
        self._lag.start()
        if self.state is not None or self._place is not None:
            overview = self._overview()
            if self.state is not None:
                self._control = Control(self.state.path, overview)

    def _open_tree(self) -> None:
        """Serve resources beside the streams, unless they are off or there are several workers."""
        settings = self.settings.resources
        if settings.tree_mode == OFF or self._place is not None:
            return
        tokens = None if settings.token_key is None else load_tokens(settings.token_key)
        if settings.token_key is not None and is_open_to_all(settings.token_key):
            self.log.warning("password-readable", file=settings.token_key, cure=CURE)
        store = None if self.state is None else open_store(self.state.path, self.log)
        access = TreeAccess(
            self._status_access,
            self.admission,
            settings.tree_origin,
            tokens,
            allows_anonymous=self.settings.access.allow_anonymous,
            service=self._user_service(),
        )
        shared = None if settings.tree_redis is None else open_log(settings.tree_redis, self.log)
        if hosts := ToldHosts(settings.tree_webhook):
            self._posters = UrlPosters(hosts, os.urandom, self.log, store)
        urls = None if self._posters is None else self._posters.urls
        own = store if shared is None else None
        tree = Tree(os.urandom, settings.tree_mode, store=own, urls=urls, shared=shared)
        self.tree = TreeSide(tree, access, os.urandom, self.log, store)
        if self.branches is not None:
            if urls is not None:
                self.branches.add_urls(urls)
            self.branches.mount(tree)
            tree.on_change = self.branches.on_change
            if self.state is not None:
                self.branches.audit.keep = AuditFile(self.state.path, self.log).write
            self.branches.start()
        if self.webrtc is not None:
            sessions, apps = self.webrtc.sessions, self._browser_apps()
            tree.mount("media", MediaBranch(sessions, apps, self.rtmp.admits))
        if shared is None:
            tree.restore_urls(self._knows)
        else:
            self._tree_log = shared
            shared.follow(tree, lambda: tree.restore_urls(self._knows))
        self.rtmp.neighbours.append(self.tree)

    def _user_service(self) -> Identifies | None:
        """The service that knows clients of the tree other than our own users and tokens."""
        url = self.settings.resources.tree_auth
        return None if url is None else UserService(url, os.urandom, self.log).identity

    def _knows(self, asker: Asker) -> bool:
        """Whether the user of a subscription with a URL is still one."""
        if asker.by_token:
            settings = self.settings.resources
            return settings.token_key is not None or settings.tree_auth is not None
        user, _, realm = (asker.user or "").rpartition("@")
        return self.admission.realm_of(user, realm) == realm

    def _transcoders(self) -> VideoTranscoders | None:
        """What makes video, by the threads that calls have as well."""
        if self.sip is not None:
            return self.sip.media.video_transcoding
        return video_transcoding(self.settings.media.transcode_video)

    def _web(self) -> list[WebApplication]:
        """The pages, and what browsers publish and play by WebRTC, if there is a port for that."""
        if self.webrtc is None:
            return [StaticPages()]
        sessions, team, network = self.webrtc.sessions, self.rtmp.team, self.settings.network
        servers = ice_servers(network.stun, network.turn, self.rtmp.has_proved)
        apps = self._browser_apps() if team is None else (LIVE,)
        whip = WhipApplication(sessions, apps, self.rtmp.admits, servers)
        return [StaticPages(), whip if team is None else WhipOfAll(whip, team)]

    def _browser_apps(self) -> tuple[str, ...]:
        return tuple(each for each in BROWSER_APPS if self.rtmp.application(each) is not None)

    def _shared(self, application: Application) -> Application:
        """An application as it is if there are several workers."""
        if self.rtmp.team is None or not isinstance(application, CallApplication):
            return application
        return NamesOfAll(application, self.rtmp.team, self.rtmp.registry)

    def _follow_calls(self) -> None:
        """Have the tree show what this process has, and web services hear of its calls."""
        settings, http = self.settings, self.settings.listeners.http
        is_local = http is not None and is_loopback(http[0])
        self.branches = BranchSide(
            Roles(
                settings.access.operator,
                is_local=is_local,
                viewers=settings.access.viewer,
                admins=settings.access.admin,
            ),
            self._own_overview(),
            call_row,
            None if self.sip is None else self.sip.core,
            self.rtmp.registry,
            settings.route,
            self.log,
            self._process.figures,
        )
        self.branches.add_recordings(self.rtmp.recordings)
        servers = settings.resources.tree_push
        self.branches.add_pushes(self.rtmp.transports, servers, self.log)
        if self.sip is not None:
            open_file = partial(PacketCapture, log=self.log, limit=LIMIT, is_tap=False)
            folder = _private(settings.process.capture_calls)
            self.branches.add_captures(folder, open_file, self.sip.media.watch)
        self.branches.call(settings.webhook, self.log)

    def _overview(self) -> Overview | WholeOverview:
        """What the operator may see and end, of all workers if there are several."""
        overview, team = self._own_overview(), self.rtmp.team
        return overview if team is None else WholeOverview(overview, team, monotonic)

    def _own_overview(self) -> Overview:
        overview = Overview(self.rtmp.registry, self.rtmp.connections, self.log)
        if self.sip is not None:
            core, overview.wake = self.sip.core, self.sip.driver.wake
            overview.calls, overview.tolls = core.context.calls, core.tolls
            overview.registrar, overview.hear = core.registrar, core.stack.receive
            overview.trunks, overview.mixes = core.trunks.trunks, core.mixes
        return overview

    def addresses(self) -> dict[str, str]:
        """The listeners by name, with their real ports, for the ready line."""
        out = {name: written(*address) for name, address in self.rtmp.addresses.items()}
        if self.sip is not None:
            out |= self.sip.addresses
        if self._http is not None:
            out["http"] = written(*self._http.address)
        if self.webrtc is not None:
            out["webrtc"] = written(*self.webrtc.address)
        return out

    def status(self) -> dict[str, object]:
        """The figures of /status, which return to their first values when everything has ended."""
        figures: dict[str, object] = {"version": __version__, "build": build()}
        figures |= self.rtmp.status()
        sessions = self.webrtc.sessions if self.webrtc is not None else None
        figures["browsers"] = 0 if sessions is None else len(sessions)
        figures["browsers_opening"] = 0 if sessions is None else sessions.opening
        if self.sip is not None:
            figures |= self.sip.status()
            now = [call.statistics for call in self.sip.core.context.calls]
            figures["media_left_out"] = self.totals.left_out + sum(each.left_out for each in now)
            figures["srtp_refused"] = self.totals.refused + sum(each.refused for each in now)
        figures |= NO_TREE if self.tree is None else self.tree.tree.figures()
        figures["loop_lag_ms"] = round(1000 * self._lag.worst, 1)
        figures |= self._process.figures()
        return figures | {"workers": 1, "workers_silent": 0}

    def of_all(self) -> dict[str, object]:
        """The figures of all workers, if there are several."""
        return self.status() if self._whole is None else self._whole.figures()

    def _metrics(self, figures: dict[str, object]) -> str:
        """The page of all workers; `figures` have been collected first."""
        if self._whole is None:
            return page(figures, self.totals, self._lag.seen)
        return page(figures, self._whole.totals(), self._whole.lags())

    def is_quiet(self) -> bool:
        """Whether no client would notice a pause, since there is no call and no stream."""
        is_silent = self.sip is None or self.sip.is_silent
        return is_silent and not self.rtmp.registry.streams

    def reload(self) -> None:
        """Read the files of users and certificate again.

        A file is taken as a whole or not at all; clients that are logged in stay.
        """
        files: dict[str, Callable[[], None]] = {}
        if self._users is not None:
            files["users"] = self._reload_users
        if self.settings.tls.tls_cert is not None:
            files["tls-cert"] = self._reload_certificate
        for what, renew in files.items():
            try:
                renew()
            except ConfigError as error:
                self.log.warning("not-reloaded", option=what, reason=str(error))
            else:
                self.log.event("reloaded", option=what)

    def _reload_certificate(self) -> None:
        if self.settings.listeners.rtmps is not None:
            self.rtmp.renew_certificate()
        if self.sip is not None:
            self.sip.renew_certificate()

    def _reload_users(self) -> None:
        access = self.settings.access
        users, credentials = load_users(access), load_credentials(access)
        self.rtmp.renew_users()
        self.admission.renew(users, credentials)
        if self._posters is not None:
            self._posters.urls.keep_users(self._knows)
        verifier = self.sip.core.server.verifier if self.sip is not None else None
        if verifier is not None and users is not None:
            verifier.users = users

    def _call_ended(self, call: Call, reason: str, now: float) -> None:
        self.totals.end(call, reason, now)
        if self._records is not None:
            self._records.write(call, reason, now)

    def stop_calls(self, signal: str | None) -> None:
        """Log the end and the signal that asked for it, and hang up every call: RFC 3261 §15."""
        status = self.status()
        figures = {name: status.get(name, 0) for name in ("calls", "streams", "rtmp_connections")}
        self.log.event("stopping", signal=signal, **figures)
        if self.sip is not None:
            self.sip.hang_up_all()

    def stop(self) -> None:
        """Say NetConnection.Connect.Closed, unregister, close everything."""
        if self.webrtc is not None:
            self.webrtc.stop()
        self.rtmp.stop()
        if self.branches is not None:
            self.branches.stop()
        if self._posters is not None:
            self._posters.stop()
        if self._control is not None:
            self._control.stop()
        if self.sip is not None:
            self.sip.stop()
        self._lag.stop()
        if self._http is not None:
            self._http.stop()
        if self._tree_log is not None:
            self._tree_log.stop()
        if self.tree is not None:
            self.tree.stop()
        if self.state is not None:
            self.state.close()
        if self._capture is not None:
            self._capture.close()
        if self._records is not None:
            self._records.close()


def warn_of_readers(
    access: AccessSettings, tls: TlsSettings, source: Path | None, log: Log
) -> None:
    """Log each file with a password or a key that everybody on this machine can read.

    The gateway runs all the same, since the machine may have no other users.  `source` is the
    configuration file.
    """
    key = tls.tls_key or tls.tls_cert  # which may have the key as well
    cures = {path: CURE for path in (access.users, access.sign_key, key) if path is not None}
    if source is not None and load_file(source).has_secret:
        cures[source] = f"{CURE}, or use the environment"
    for path, cure in cures.items():
        if is_open_to_all(path):
            log.warning("password-readable", file=path, cure=cure)


def _part(settings: Settings, place: WorkerPlace) -> Settings:
    """The settings of one of several workers: what only one process can have is the first one's."""
    own: dict[str, object] = {}
    if "rtmfp" in place.opened:
        own["max_rtmfp_memory"] = settings.limits.max_rtmfp_memory // place.count
    elif not place.is_first:
        own["rtmfp"] = None
    if (webrtc := settings.listeners.webrtc) is not None and webrtc[1]:
        own["webrtc"] = (webrtc[0], webrtc[1] + place.index)
    if (capture := settings.process.capture) is not None and not place.is_first:
        own["capture"] = capture.with_name(f"{capture.name}.{place.index}")
    if not place.is_first:
        own |= dict.fromkeys(("rtmpt", "state", "location"))
    return settings.with_values(own)


def _private(folder: Path | None) -> Path | None:
    """The folder of --capture-calls, made for its owner alone if it is missing."""
    if folder is not None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--capture-calls {folder}: {error.strerror}") from None
    return folder


def _load_decoder() -> None:
    try:
        audio_decoder.load()
    except ImportError:
        raise ConfigError(needs_extra("--mix-calls", "transcode")) from None
