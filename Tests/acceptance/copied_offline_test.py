"""A camera's card copied in while there is no store, and what the official client then reads.

Run by scripts/acceptance, which names the programs in BUCKETFS and BUCKETFS_EMULATOR.
"""

import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from storage3 import SyncStorageClient

COUNT = 500


class Machine:
    """A home, a mount point, an emulator on a port that stays its own, and the built program."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="bucketfs-acceptance-")
        self.mount_point = self.make("mnt")
        self.environment = dict(os.environ)
        for word in ["CACHE", "DATA", "CONFIG"]:
            self.environment[f"XDG_{word}_HOME"] = self.make(word.lower())
        self.environment["XDG_RUNTIME_DIR"] = self.make("run")
        self.port, self.emulator, self.keys, self.clients = 0, None, {}, []
        self.start()
        self.environment["SUPABASE_KEY"] = self.keys["service"]

    def make(self, name):
        path = os.path.join(self.folder.name, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def start(self):
        self.emulator = subprocess.Popen(
            [
                os.environ["BUCKETFS_EMULATOR"],
                *("--data", self.make("store"), "--port", str(self.port), "--print-keys"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.emulator.stdout:
            word, value = line.split()
            if word == "ready":
                self.url = value
                self.port = int(value.rsplit(":", 1)[1])
                return
            self.keys[word] = value
        raise RuntimeError("the emulator did not start")

    def stop(self):
        self.emulator.kill()
        self.emulator.wait()
        self.emulator.stdout.close()

    def client(self):
        key = self.keys["service"]
        headers = {"apikey": key, "Authorization": f"Bearer {key}"}
        self.clients.append(SyncStorageClient(self.url + "/storage/v1/", headers))
        return self.clients[-1]

    def bucketfs(self, *arguments, check=True, **environment):
        return subprocess.run(
            [os.environ["BUCKETFS"], *arguments],
            env=self.environment | environment,
            check=check,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def mount(self, mount_point=None, **environment):
        return self.bucketfs(
            *("mount", f"supabase:{self.url}", mount_point or self.mount_point),
            *("-o", "bucket=album"),
            **environment,
        )

    def kill_mount(self):
        status = json.loads(self.bucketfs("status", self.mount_point, "--json").stdout)
        os.kill(status["pid"], signal.SIGKILL)
        while os.path.exists(f"/proc/{status['pid']}"):
            time.sleep(0.01)

    def requests(self):
        with urllib.request.urlopen(self.url + "/_emulator/requests") as answer:
            return json.load(answer)

    def close(self):
        subprocess.run(["fusermount3", "-uzq", self.mount_point], check=False)
        for client in self.clients:
            client.session.close()
        self.stop()
        self.folder.cleanup()


class Watcher(threading.Thread):
    """Lists folders with ls(1) again and again, and notes what is not there exactly once."""

    def __init__(self, expected):
        super().__init__()
        self.expected = expected
        self.looks, self.faults = 0, []
        self.is_stopping = False

    def run(self):
        while not self.is_stopping:
            for folder, names in self.expected.items():
                listed = subprocess.run(["ls", folder], capture_output=True, text=True, check=False)
                counts = collections.Counter(listed.stdout.splitlines())
                if listed.returncode or counts != collections.Counter(names):
                    self.faults.append(
                        f"{folder}: {len(counts)} of {len(names)} names, twice:"
                        f" {[name for name, times in counts.items() if times > 1]},"
                        f" missing: {sorted(set(names) - set(counts))[:5]} {listed.stderr}"
                    )
            self.looks += 1


class CopiedOfflineTest(unittest.TestCase):
    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)
        self.machine.client().create_bucket("album")

    def make_card(self):
        """Photographs with times of their own, in the order in which cp(1) takes them."""
        generator = random.Random(2026)
        card = pathlib.Path(self.machine.make("card"))
        self.photos = {}
        for number in range(COUNT):
            path = card / f"{100 + number // 250}CANON" / f"IMG {1000 + number}.jpg"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(generator.randbytes(generator.randint(1, 40_000)))
            moment = 1_600_000_000_000_000_000 + number * 61_001_000_003
            os.utime(path, ns=(moment, moment))
            self.photos["card/" + str(path.relative_to(card))] = path
        return card

    def assert_all_there(self, mount_point, with_times=True):
        for name, path in self.photos.items():
            there = pathlib.Path(mount_point, name)
            self.assertEqual(there.read_bytes(), path.read_bytes(), name)
            if with_times:
                self.assertEqual(there.stat().st_mtime_ns, path.stat().st_mtime_ns, name)

    def testACardCopiedInWithoutTheStoreReachesItOnceAndWhole(self):
        machine = self.machine
        card = self.make_card()
        machine.mount()
        machine.stop()
        subprocess.run(
            ["cp", "-r", "--preserve=timestamps", card, machine.mount_point],
            check=True,
            timeout=120,
        )
        folders = collections.defaultdict(list)
        for name in self.photos:
            folder, name = os.path.split(name)
            folders[os.path.join(machine.mount_point, folder)].append(name)
        for folder, names in folders.items():
            self.assertEqual(sorted(os.listdir(folder)), sorted(names))
        machine.kill_mount()
        told = machine.mount()
        self.assertIn("pending", told.stdout + told.stderr)
        self.assert_all_there(machine.mount_point)
        queued = json.loads(machine.bucketfs("queue", machine.mount_point, "--json").stdout)
        order = [record["object_path"] for record in queued if record["object_path"] in self.photos]
        self.assertEqual(sorted(order), sorted(self.photos))
        self.assertTrue(all(record["state"] == "waiting" for record in queued))

        watcher = Watcher(folders)
        watcher.start()
        try:
            machine.start()
            machine.bucketfs("online", machine.mount_point)
            waited = machine.bucketfs(
                "wait", "--timeout", "200s", machine.mount_point, check=False)
            # For some seconds more, when listings are fetched anew.
            time.sleep(3)
        finally:
            watcher.is_stopping = True
            watcher.join()
        self.assertEqual(waited.returncode, 0, waited.stderr)
        self.assertEqual(watcher.faults, [])
        self.assertGreater(watcher.looks, 5)

        uploads = [entry["key"] for entry in machine.requests() if entry["route"] == "upload"]
        sent = [key for key in uploads if key in self.photos]
        self.assertEqual(len(sent), COUNT, "each is sent once")
        places = {name: place for place, name in enumerate(order)}
        # Four go at a time; those of the first try may wait for their next one.
        overtaken = [name for place, name in enumerate(sent) if abs(places[name] - place) >= 16]
        self.assertLessEqual(len(overtaken), 8, "oldest first")

        self.assert_all_there(machine.mount_point)
        album = machine.client().from_("album")
        for name, path in self.photos.items():
            self.assertEqual(album.download(name), path.read_bytes(), name)
        for name in list(self.photos)[::25]:
            info = album.info(name)
            self.assertEqual(info["content_type"], "image/jpeg")
            moment = self.photos[name].stat().st_mtime_ns
            seconds, _, fraction = str(info["metadata"]["mtime"]).partition(".")
            told = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
            self.assertEqual(told, moment, name)
        # And who mounts it for the first time; a listing gives the store's own times.
        fresh = machine.make("fresh")
        machine.mount(
            fresh,
            XDG_CACHE_HOME=machine.make("cache2"),
            XDG_DATA_HOME=machine.make("data2"),
        )
        self.addCleanup(subprocess.run, ["fusermount3", "-uzq", fresh], check=False)
        self.assert_all_there(fresh, with_times=False)
        machine.bucketfs("unmount", fresh)
        machine.bucketfs("unmount", machine.mount_point)


if __name__ == "__main__":
    unittest.main()
