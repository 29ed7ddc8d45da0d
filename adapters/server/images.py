"""Images of requests: refused where no model reads them, fetched from listed hosts, and checked before an answer."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from toolgrammar.core.conversation import ImagePart, Message
from toolgrammar.core.errors import MissingDependencyError, ModelError
from toolgrammar.core.models import LocalModel, Model

from .fields import RequestError
from .limits import give_place

#: Maximum time in which all images of a request are fetched, in seconds; and number of redirects of one.
FETCH_SECONDS, MAX_REDIRECTS = 10.0, 3

_PORTS = {"http": 80, "https": 443}
#: What is assigned of IPv6. Addresses of IPv4 in other forms (mapped, NAT64) are outside, but for two.
_ASSIGNED = ipaddress.ip_network("2000::/3")


class ImageFetcher:
    """Reads images at addresses of listed hosts.

    The addresses of a host must be public, also after a redirect, and the connection is made to the address that was
    checked. Neither a proxy nor a cookie nor a key is used.

    Args:
        hosts: names; ``*.NAME`` is any host under a name, ``*`` any host. ``:PORT`` allows another port than that of
            the scheme. An address of IP that is listed itself may be private.

    Raises:
        ModelError: one of them is none.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = [_host_and_port(host) for host in ([hosts] if isinstance(hosts, str) else hosts)]
        self._tls = ssl.create_default_context()

    def read(self, url: str, end: float, most: int) -> bytes:
        """Return the file at an address.

        Args:
            url: the address.
            end: time at which it must be there, on the monotonic clock.
            most: maximum number of bytes.

        Raises:
            ValueError: the address is not allowed, cannot be reached in time, or has no such file.
        """
        too_late = f"it takes longer than {FETCH_SECONDS:g} seconds"
        for _ in range(MAX_REDIRECTS + 1):
            try:
                location, data = self._answer(url, end, most)
            except (OSError, http.client.HTTPException) as error:
                is_late = time.monotonic() >= end  # the timer has cut the connection
                raise ValueError(too_late if is_late else str(error) or type(error).__name__) from error
            if len(data) > most:
                raise ValueError(f"it has more than {most:,} bytes")
            if time.monotonic() >= end:
                raise ValueError(too_late)
            if location is None:
                return data
            url = urljoin(url, location)
        raise ValueError(f"it has more than {MAX_REDIRECTS} redirects")

    def _answer(self, url: str, end: float, most: int) -> tuple[str | None, bytes]:
        """Return where an address is redirected to, or its file, up to one byte more than allowed."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            raise ValueError("its address is not of the form http(s)://HOST/PATH")
        host = parts.hostname.encode("idna").decode()
        scheme_port = _PORTS[parts.scheme]
        port = parts.port or scheme_port
        connection = http.client.HTTPConnection(host, port)
        connection.auto_open = 0  # it has this one socket, to the address that was checked
        connection.sock = self._connected(host, port, scheme_port, end)
        watch = threading.Timer(max(end - time.monotonic(), 0), _cut, (connection.sock,))
        watch.daemon = True
        try:
            if parts.scheme == "https":
                connection.sock = self._tls.wrap_socket(
                    connection.sock, server_hostname=host, do_handshake_on_connect=False
                )
                watch.args = (connection.sock,)  # the plain socket has no connection any more
            watch.start()
            if isinstance(connection.sock, ssl.SSLSocket):
                connection.sock.do_handshake()
            shown = f"[{host}]" if ":" in host else host
            headers = {"Host": shown if port == scheme_port else f"{shown}:{port}", "Accept": "image/*"}
            headers |= {"User-Agent": "toolgrammar", "Connection": "close"}
            connection.request("GET", _target_of(parts), headers=headers)
            with connection.getresponse() as response:
                location = response.headers["Location"] if response.status in (301, 302, 303, 307, 308) else None
                if response.status != 200 and location is None:
                    raise ValueError(f"its host answers with the status {response.status}")
                return location, b"" if location is not None else response.read(most + 1)
        finally:
            watch.cancel()
            connection.close()

    def _connected(self, host: str, port: int, scheme_port: int, end: float) -> socket.socket:
        """Return a connection to a host, at an address that was checked.

        ``scheme_port`` is the port of hosts that are listed without one; ``end`` is a time on the monotonic clock.

        Raises:
            ValueError: the host is not listed, or has a private address.
            OSError: it cannot be reached.
        """
        listed = [name for name, own in self._hosts if port == (own or scheme_port) and _is_under(host, name)]
        if not listed:
            raise ValueError("its host is not among those from which this server fetches images")
        addresses = [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        is_listed_address = host in listed and _ip(host) is not None
        if not is_listed_address and not all(map(_is_public, addresses)):
            raise ValueError("its host has a private address")
        error = OSError("its host has no address")
        for address in addresses:
            try:
                return socket.create_connection((address, port), max(end - time.monotonic(), 0.01))
            except OSError as failure:
                error = failure
        raise error


class RequestImages:
    """The images of one request.

    Args:
        model: which gets them.
        fetcher: reads images at addresses; None: nothing is fetched.
        most: maximum number of bytes that are fetched.
    """

    def __init__(self, model: Model, fetcher: ImageFetcher | None, most: int) -> None:
        self._model = model
        self._fetcher = fetcher
        self._left = most
        self._end: float | None = None
        self._fetched: dict[str, bytes] = {}

    def checked(self, message: Message, field: str) -> Message:
        """Return a message whose images a local model can read. A model on a server gets them as they are.

        Args:
            message: the message.
            field: path of its content in the request.

        Raises:
            RequestError: the model takes no images, or one of them cannot be fetched or read.
        """
        if not message.images:
            return message
        if not self._model.capabilities.images:
            raise RequestError("this model takes no images", field=field, hint="send text only")
        if not isinstance(self._model, LocalModel):
            return message
        parts = () if isinstance(message.content, str) else message.content
        read = (self._read(self._model, part, field) if isinstance(part, ImagePart) else part for part in parts)
        return replace(message, content=tuple(read))

    def _read(self, model: LocalModel, part: ImagePart, field: str) -> ImagePart:
        """Return an image of the content at ``field`` that the model can read; one with an address alone is fetched.

        Raises:
            RequestError: it cannot be fetched or read.
        """
        subject = f"the image in {field}"
        if part.data is None and part.url and self._fetcher is not None:
            try:
                part = ImagePart(self._file(self._fetcher, part.url))
            except ValueError as error:
                raise RequestError(
                    f"{subject} cannot be fetched: {error}", field=field, hint="send its bytes (base64)"
                ) from error
        try:
            model.require_image(part, subject)
        except MissingDependencyError:
            raise
        except ModelError as error:
            here = "send its bytes (base64), or have this server fetch from the host: --fetch-images HOST"
            raise RequestError(error.message, field=field, hint=here if part.data is None else error.hint) from error
        return part

    def _file(self, fetcher: ImageFetcher, url: str) -> bytes:
        if url not in self._fetched:
            give_place()
            self._end = self._end or time.monotonic() + FETCH_SECONDS
            self._fetched[url] = fetcher.read(url, self._end, self._left)
            self._left -= len(self._fetched[url])
        return self._fetched[url]


def _target_of(parts: SplitResult) -> str:
    """Return the path and the query of an address, as a request has them: what no address may have is escaped."""
    query = quote(parts.query, "/%:@!$&'()*+,;=~?")
    return quote(parts.path or "/", "/%:@!$&'()*+,;=~") + (f"?{query}" if query else "")


def _host_and_port(entry: str) -> tuple[str, int | None]:
    """Return the name and the port (None: that of the scheme) of a listed host: ``"*.a.org:81" -> ("*.a.org", 81)``.

    Raises:
        ModelError: it is no host.
    """
    try:
        parts = urlsplit(f"//{entry}")
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.netloc != entry or "@" in entry or (host != "*" and "*" in host.removeprefix("*.")):
        raise ModelError(
            f"{entry!r} is no host of images", hint="for example images.example.com, *.example.com or 10.0.0.5:9000"
        )
    return host, port


def _is_under(host: str, name: str) -> bool:
    return name in (host, "*") or (name.startswith("*.") and host.endswith(name[1:]))


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def _is_public(address: str) -> bool:
    """Return True if an address of IP is one of the internet, and hides no address of IPv4."""
    ip = _ip(address)
    if ip is None or not ip.is_global or ip.is_multicast:
        return False
    return isinstance(ip, ipaddress.IPv4Address) or (ip in _ASSIGNED and ip.sixtofour is None and ip.teredo is None)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
