"""Search that learns from its users: a service, `samewise serve`, and its clients."""

from samewise.serve.client import AsyncClient, Client, ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]
