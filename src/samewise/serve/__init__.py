"""Search that learns from its users: a service, `samewise serve`, and its client."""

from samewise.serve.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
