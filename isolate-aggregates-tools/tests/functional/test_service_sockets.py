# SPDX-License-Identifier: Apache-2.0
"""The messages when a real connection fails, breaks or hangs."""

import contextlib
import datetime
import socket
import ssl
import struct
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from http_fakes import LONG, client, failing, service
import pytest

from isolate_aggregates import exception


@contextlib.contextmanager
def listening(answer):
    """Run a server on a real socket.

    :param answer: What to do with each connection.
    :returns: Its address, and a list with an entry for each connection; it
        is complete once the server has ended.
    """
    connections = []
    with (
        socket.create_server(('127.0.0.1', 0)) as server,
        socket.socket() as last,
    ):
        last.bind(('127.0.0.1', 0))

        def serve():
            while True:
                accepted, peer = server.accept()
                with accepted:
                    if peer == last.getsockname():
                        return
                    connections.append(str(peer))
                    answer(accepted)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        address = '{}:{}'.format(*server.getsockname())
        try:
            yield address, connections
        finally:
            # Connections are accepted in turn: this one after all others.
            last.connect(server.getsockname())
            thread.join()


# A timeout that is long enough even on a busy machine.
_SECONDS = 120


def hang_up(accepted):
    """Read a little, then reset the connection as uWSGI does."""
    accepted.recv(100)
    linger = struct.pack('ii', 1, 0)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def never_answer(accepted):
    accepted.settimeout(_SECONDS)
    with contextlib.suppress(OSError):
        while accepted.recv(1000):
            pass


def test_a_refused_connection_is_retried_and_named():
    with socket.create_server(('127.0.0.1', 0)) as closed:
        port = closed.getsockname()[1]
    url = f'http://127.0.0.1:{port}'
    error = failing(service(client(url)))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        f'Placement at {url} cannot be reached: Connection refused; '
        'check that it is running and that this is its address.'
    )


def test_a_hanging_service_fails_after_four_timeouts():
    with listening(never_answer) as (address, connections):
        error = failing(service(client(f'http://{address}', timeout=0.05)))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        f'Placement at http://{address} does not answer in time; check '
        'whether it is overloaded, or allow more seconds with --timeout or '
        '[isolate_aggregates] timeout.'
    )
    assert len(connections) == 4


def answer_plainly(accepted):
    accepted.recv(100)
    accepted.sendall(b'HTTP/1.0 400 Bad Request\r\n\r\n')


def test_a_service_without_tls_is_named():
    with listening(answer_plainly) as (address, _):
        error = failing(service(client(f'https://{address}')))
    assert str(error) == (
        f'Placement at https://{address} does not speak TLS there; check that '
        'its URL begins with http:, not https:, and has the right port.'
    )


@pytest.fixture
def certificate(tmp_path):
    """A certificate that no CA has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, 'localhost')]
    )
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / 'certificate.pem'
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_an_untrusted_certificate_is_named_without_a_retry(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def shake_hands(accepted):
        with contextlib.suppress(OSError):
            context.wrap_socket(accepted, server_side=True)

    with listening(shake_hands) as (address, connections):
        error = failing(service(client(f'https://{address}')))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        f'Placement at https://{address} cannot be trusted: self-signed '
        'certificate; check its certificate, and specify the CA that signed '
        'it with --os-cacert or [isolate_aggregates] cafile.'
    )
    assert len(connections) == 1


def test_a_connection_reset_on_a_long_query_means_that_it_is_too_long():
    with listening(hang_up) as (address, _):
        error = failing(service(client(f'http://{address}')), LONG)
    assert isinstance(error, exception.QueryTooLong)
    assert str(error).startswith(
        f'Placement at http://{address} closed the connection: the query of '
        '4,014 bytes is too long. '
    )


def test_a_connection_closed_without_an_answer_is_reported():
    with listening(lambda accepted: accepted.recv(9999)) as (address, _):
        error = failing(service(client(f'http://{address}')))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        f'Placement at http://{address} cannot be reached: Remote end closed '
        'connection without response; check that it is running and that this '
        'is its address.'
    )


def test_a_service_that_is_down_is_not_blamed_on_a_long_query():
    error = failing(service(client('http://127.0.0.1:1')), LONG)
    assert isinstance(error, exception.ServiceUnreachable)


def test_a_reset_connection_on_a_short_query_is_reported_as_one():
    with listening(hang_up) as (address, _):
        error = failing(service(client(f'http://{address}')))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        f'Placement at http://{address} cannot be reached: Connection reset '
        'by peer; check that it is running and that this is its address.'
    )
