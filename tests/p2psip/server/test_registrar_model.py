"""The registrar against a simple model of instances, connections and questions."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.sip.elements import PORT
from support.sip.homes import HOME, Home, finals, forwarded, register, request

from p2psip.server.registrar import Registrar
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")
HOSTS = ["10.0.1.1", "10.0.1.2"]
ROOM = 3


class Phones(RuleBasedStateMachine):
    """Phones come by UDP and TCP, lose connections, and answer or do not.

    The model is a list of [Contact, instance, flow, whether it may be called], the oldest first.
    """

    def __init__(self):
        super().__init__()
        self.home = home = Home()
        home.registrar = home.endpoint.registrar = Registrar(
            home.domains, None, home.stack, home.random, max_bindings=ROOM
        )
        self.model, self.questions, self.count = [], {}, 0

    def hear(self, message, flow):
        """What is said; questions are noted."""
        self.home.stack.receive(bytes(message), flow, 0.0)
        return self.note(self.home.said())

    def note(self, sent):
        """Remember what was asked of which Contact, and that it went there and by UDP."""
        for out, to, how in sent:
            if isinstance(out, Request) and out.method == "OPTIONS":
                assert (to, how) == (out.uri.host, "UDP")
                self.questions[str(out.uri)] = out
        return sent

    @rule(
        transport=st.sampled_from(["UDP", "TCP"]),
        source=st.sampled_from(HOSTS),
        port=st.sampled_from([PORT, 40001]),
        host=st.sampled_from(HOSTS),
        instance=st.sampled_from([None, "urn:uuid:1", "urn:uuid:2"]),
        goes=st.booleans(),
    )
    def register(self, transport, source, port, host, instance, goes):
        self.count += 1
        flow = Flow(transport, (source, port), (HOME, PORT))
        contact = f"sip:bob@{host}:{PORT}"
        device = f';+sip.instance="<{instance}>"' if instance else ""
        message = register(
            contact=f"<{contact}>{device}", cseq=self.count, expires=0 if goes else 60
        )
        via = f"SIP/2.0/{transport} {source}:{port};rport;branch=z9hG4bK{self.count}"
        message = message.replace(headers=message.headers.with_("Via", via))
        sent = self.hear(message, flow)
        assert finals(sent) == [200]
        known = next((entry for entry in self.model if entry[0] == contact), None)
        self.model = [
            entry
            for entry in self.model
            if entry[0] != contact and (goes or instance is None or entry[1] != instance)
        ]
        if not goes:
            is_way = transport == "TCP" or host == source
            has_answered = known is not None and known[3] == "answered"
            how = "way" if is_way else "answered" if has_answered else None
            self.model = [*self.model, [contact, instance, flow, how]][-ROOM:]
        [answer] = [m for m, _, _ in sent if isinstance(m, Response)]
        assert {str(c.uri) for c in answer.contacts} == {entry[0] for entry in self.model}

    @precondition(lambda self: self.questions)
    @rule(data=st.data())
    def reply(self, data):
        contact = data.draw(st.sampled_from(sorted(self.questions)))
        question = self.questions.pop(contact)
        flow = Flow("UDP", (question.uri.host, PORT), (HOME, PORT))
        self.hear(response_to(question, 200, to_tag="x"), flow)
        for entry in self.model:
            if entry[0] == contact and entry[3] is None:
                entry[3] = "answered"

    @rule(source=st.sampled_from(HOSTS), port=st.sampled_from([PORT, 40001]))
    def lose(self, source, port):
        flow = Flow("TCP", (source, port), (HOME, PORT))
        self.home.stack.flow_failed(flow, 0.0)
        self.note(self.home.said())
        left = []
        for entry in self.model:
            if entry[2] != flow or entry[3] == "answered":
                left.append(entry)
            elif entry[0] == f"sip:bob@{source}:{PORT}" and port != PORT:
                left.append([*entry[:3], None])
        self.model = left

    @invariant()
    def agrees(self):
        registrar = self.home.registrar
        assert [str(b.contact.uri) for b in registrar.registered(AOR, 0.0)] == [
            entry[0] for entry in self.model
        ]
        usable = {entry[0] for entry in self.model if entry[3]}
        assert {str(b.contact.uri) for b in registrar.bindings(AOR, 0.0)} == usable
        instances = [entry[1] for entry in self.model if entry[1]]
        assert len(instances) == len(set(instances))

    @rule()
    def call(self):
        self.count += 1
        sent = self.home.hear(request(call=f"c{self.count}"))
        usable = {entry[0] for entry in self.model if entry[3]}
        assert {uri for uri, _, _ in forwarded(sent)} == usable
        self.home.hear(request("CANCEL", call=f"c{self.count}"))

    def teardown(self):
        self.home.wait(10_000.0)
        assert self.home.registrar.count(10_000.0) == 0
        assert not len(self.home.registrar._probes) and not len(self.home.registrar._binding_index)


TestPhones = Phones.TestCase
