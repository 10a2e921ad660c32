#!/usr/bin/env python3
"""Runs the fuzzers of build/fuzz, each on its kept corpus and then on mutations of it.

usage: run_fuzzers.py [--seconds N | --runs N] [--seed S] [--jobs J] [--junit FILE] [--grow] [TARGET...]

./check makes a fixed number of runs with a fixed seed, so that it finds the same on every machine. To look for something new:
nice -n 19 run_fuzzers.py --seconds 1800 --seed 0 --grow
--grow keeps inputs that reached something new in build/fuzz/corpus/TARGET for the next run. An input that breaks a promise is
kept in build/fuzz/findings; README.md says what to do with it. Exit code 1: something was found, or a target is missing.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
# Bytes of an input: beyond, each try costs more than it finds.
LONGEST = {"read_trace": 4096, "explain": 8192, "packed_trace": 4096, "spool": 16384, "names": 1024, "op_details": 2048,
           "json_mend": 4096, "budget": 2048, "view_request": 1024, "sql": 1024, "ranks": 8192, "nsys": 8192, "index": 16384}
