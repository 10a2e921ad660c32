#!/usr/bin/env python3
"""Starts the ranks of a job on several "hosts" of one machine, with a network between them that can be made slow.

    sudo python3 examples/rank_jobs/hosts.py OUT --network slow-host [--hosts 4] [--ranks-per-host 2] [--only NAME ...]

A host is a name and a network of its own (namespaces of Linux, so root is needed); a bridge joins the networks. NCCL
takes ranks of two such hosts for ranks of two machines, and sends over sockets. Ranks share GPUs if there are too few:
then start NVIDIA's MPS first (README.md).

    even       nothing is slow
    slow-host  what the last host sends and receives passes a filter that lets RATE through
    slow-link  only what hosts 1 and 2 send each other does
    no-peers   the last host's GPUs may not reach each other's memory (NCCL_P2P_DISABLE)
    busy-host  the ranks of the last host share one core with two programs that never sleep

Runs links.py in each rank. Ends with 1 if a rank failed.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time
from typing import Dict, List

HERE = pathlib.Path(__file__).parent
LAST_CORE = max(os.sched_getaffinity(0))
NETWORKS = ("even", "slow-host", "slow-link", "no-peers", "busy-host")


def call(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True)


class Host:
    """A process that does nothing, in namespaces of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.holder = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c",
                                        f"hostname {name} && ip link set lo up && exec sleep 900"])
        deadline = time.monotonic() + 5
        while pathlib.Path(f"/proc/{self.holder.pid}/comm").read_text() != "sleep\n":
            if self.holder.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("hosts.py: a host needs unshare, ip and root: see the lines above")
            time.sleep(0.01)

    def prefix(self) -> List[str]:
        return ["nsenter", "-t", str(self.holder.pid), "--net", "--uts"]

    def call(self, *command: object) -> None:
        call(*self.prefix(), *command)

    def stop(self) -> None:
        self.holder.kill()
        self.holder.wait()


def address(number: int) -> str:
    return f"10.77.0.{number + 1}"


def limit(host: Host, interface: str, rate: str) -> None:
    host.call("tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", "256k", "latency", "50ms")


def join(hosts: List[Host], switch: Host, network: str, rate: str) -> None:
    switch.call("ip", "link", "add", "switch", "type", "bridge")
    switch.call("ip", "link", "set", "switch", "up")
    for number, host in enumerate(hosts):
        port = f"port{number}"
        switch.call("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.holder.pid)
        switch.call("ip", "link", "set", port, "master", "switch", "up")
        host.call("ip", "addr", "add", f"{address(number)}/24", "dev", "eth0")
        host.call("ip", "link", "set", "eth0", "up")
        if network == "slow-host" and host is hosts[-1]:
            limit(host, "eth0", rate)
            limit(switch, port, rate)
    if network == "slow-link":  # a cable of their own
        one, other = hosts[1], hosts[2]
        one.call("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other.holder.pid)
        for host, peer in ((one, 2), (other, 1)):
            host.call("ip", "link", "set", "cable", "up")
            host.call("ip", "route", "add", f"{address(peer)}/32", "dev", "cable")
            limit(host, "cable", rate)


def environment(rank: int, args: argparse.Namespace) -> Dict[str, str]:
    world = args.hosts * args.ranks_per_host
    out = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank % args.ranks_per_host),
               LOCAL_WORLD_SIZE=str(args.ranks_per_host), MASTER_ADDR=address(0), MASTER_PORT="29577",
               NCCL_SOCKET_IFNAME="eth0", GLOO_SOCKET_IFNAME="eth0", NCCL_IB_DISABLE="1", OMP_NUM_THREADS="1")
    if args.network == "no-peers" and rank // args.ranks_per_host == args.hosts - 1:
        out.update(NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    if args.network == "busy-host" and rank // args.ranks_per_host == args.hosts - 1:
        out["BUSY_CORE"] = str(LAST_CORE)  # links.py moves there when it has started
    return out


def wait_for(ranks: List[subprocess.Popen], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(rank.poll() is None for rank in ranks):
        failed = [number for number, rank in enumerate(ranks) if rank.poll() not in (None, 0)]
        if failed or time.monotonic() > deadline:
            print(f"hosts.py: ranks {failed} failed" if failed else f"hosts.py: not done after {seconds:.0f} s", file=sys.stderr)
            return False
        time.sleep(0.1)
    return all(rank.returncode == 0 for rank in ranks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--network", choices=NETWORKS, default="even")
    parser.add_argument("--rate", default="2gbit", help="of what is slow, as tc writes it (default: 2gbit)")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks-per-host", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120, help="more than that ends the job (default: 120)")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="jobs of links.py")
    args = parser.parse_args()
    hosts: List[Host] = []
    ranks: List[subprocess.Popen] = []
    burners: List[subprocess.Popen] = []
    try:
        switch = Host("switch")
        hosts.append(switch)
        hosts += [Host(f"host-{number}") for number in range(args.hosts)]
        join(hosts[1:], switch, args.network, args.rate)
        for rank in range(args.hosts * args.ranks_per_host):
            host = hosts[1 + rank // args.ranks_per_host]
            ranks.append(subprocess.Popen([*host.prefix(), sys.executable, str(HERE / "links.py"), str(args.out), "--network",
                                           args.network, *(["--only", *args.only] if args.only else [])],
                                          env=environment(rank, args)))
        if args.network == "busy-host":
            burners = [subprocess.Popen(["taskset", "-c", str(LAST_CORE), sys.executable, "-c", "while True: pass"])
                       for _ in range(2)]
        return 0 if wait_for(ranks, args.seconds) else 1
    finally:
        for process in ranks + burners:
            if process.poll() is None:
                process.kill()
        for host in hosts:
            host.stop()


if __name__ == "__main__":
    sys.exit(main())
