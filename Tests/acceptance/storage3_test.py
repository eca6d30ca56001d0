"""The official Python client against the emulator: what it accepts, our users' tools accept.

Run by scripts/acceptance, which names the program in BUCKETFS_EMULATOR.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from storage3 import SyncStorageClient
from storage3.exceptions import StorageApiError

USERS = {
    "users": [
        {
            "email": "ann@example.org",
            "password": "secret",
            "policies": [
                {"bucket": "docs", "prefix": "ann/", "allow": ["select", "insert"]}
            ],
        }
    ]
}


class Emulator:
    """One run of the program on a folder of its own, on a free port."""

    def __init__(self, profile="hosted"):
        self.folder = tempfile.TemporaryDirectory(prefix="bucketfs-acceptance-")
        users = pathlib.Path(self.folder.name, "users.json")
        users.write_text(json.dumps(USERS))
        self.process = subprocess.Popen(
            [
                os.environ["BUCKETFS_EMULATOR"],
                *("--data", self.folder.name + "/data", "--port", "0"),
                *("--profile", profile, "--users", str(users), "--print-keys"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.clients = []
        self.keys = {}
        for line in self.process.stdout:
            word, value = line.split()
            if word == "ready":
                self.url = value
                return
            self.keys[word] = value
        raise RuntimeError("the emulator did not start")

    def stop(self):
        for client in self.clients:
            client.session.close()
        self.process.terminate()
        self.process.wait(timeout=10)
        self.process.stdout.close()
        self.folder.cleanup()

    def client(self, bearer=None, apikey=None):
        bearer = bearer or self.keys["service"]
        headers = {"apikey": apikey or self.keys["anon"], "Authorization": f"Bearer {bearer}"}
        self.clients.append(SyncStorageClient(self.url + "/storage/v1/", headers))
        return self.clients[-1]

    def fetch(self, url):
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()

    def sign_in(self):
        request = urllib.request.Request(
            self.url + "/auth/v1/token?grant_type=password",
            data=json.dumps({"email": "ann@example.org", "password": "secret"}).encode(),
            headers={"apikey": self.keys["publishable"], "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["access_token"]


class Base(unittest.TestCase):
    profile = "hosted"

    @classmethod
    def setUpClass(cls):
        cls.emulator = Emulator(cls.profile)
        cls.storage = cls.emulator.client()
        cls.storage.create_bucket("docs")

    @classmethod
    def tearDownClass(cls):
        cls.emulator.stop()

    def setUp(self):
        self.docs = self.storage.from_("docs")

    def assertRefused(self, status, code, call, *arguments):
        with self.assertRaises(StorageApiError) as caught:
            call(*arguments)
        self.assertEqual(str(caught.exception.status), str(status))
        self.assertEqual(caught.exception.code, code)


class HostedTest(Base):
    def test_upload_and_download(self):
        answer = self.docs.upload("u/a b+c;d.txt", b"hello", {"content-type": "text/plain"})
        self.assertEqual(answer.full_path, "docs/u/a b+c;d.txt")
        self.assertEqual(self.docs.download("u/a b+c;d.txt"), b"hello")

    def test_upload_of_a_file_on_disk(self):
        path = pathlib.Path(self.emulator.folder.name, "photo.jpg")
        path.write_bytes(bytes(range(256)) * 12000)
        self.docs.upload("u/photo.jpg", path, {"content-type": "image/jpeg"})
        self.assertEqual(self.docs.download("u/photo.jpg"), path.read_bytes())

    def test_upload_of_nothing(self):
        self.docs.upload("u/empty", b"")
        self.assertEqual(self.docs.download("u/empty"), b"")

    def test_duplicate_is_refused(self):
        self.docs.upload("dup.txt", b"1")
        self.assertRefused(409, "Duplicate", self.docs.upload, "dup.txt", b"2")
        self.assertEqual(self.docs.download("dup.txt"), b"1")

    def test_upsert_overwrites(self):
        self.docs.upload("ups.txt", b"1")
        self.docs.upload("ups.txt", b"2", {"upsert": "true"})
        self.assertEqual(self.docs.download("ups.txt"), b"2")

    def test_update_overwrites_and_keeps_the_id(self):
        self.docs.upload("upd.txt", b"1", {"metadata": {"mtime": "7"}})
        before = self.docs.info("upd.txt")
        self.docs.update("upd.txt", b"22")
        after = self.docs.info("upd.txt")
        self.assertEqual(self.docs.download("upd.txt"), b"22")
        self.assertEqual(before["id"], after["id"])
        self.assertNotEqual(before["version"], after["version"])
        self.assertEqual(before["metadata"], {"mtime": "7"})
        self.assertEqual(after["metadata"], {})

    def test_info(self):
        self.docs.upload("i/n.txt", b"hello", {"content-type": "text/plain"})
        info = self.docs.info("i/n.txt")
        self.assertEqual(info["name"], "i/n.txt")
        self.assertEqual(info["size"], 5)
        self.assertEqual(info["content_type"], "text/plain")
        self.assertEqual(info["cache_control"], "max-age=3600")
        self.assertEqual(info["etag"], '"5d41402abc4b2a76b9719d911017c592"')

    def test_exists(self):
        self.docs.upload("there.txt", b"1")
        self.assertTrue(self.docs.exists("there.txt"))
        self.assertFalse(self.docs.exists("gone.txt"))

    def test_missing_object(self):
        self.assertRefused(404, "not_found", self.docs.download, "gone.txt")

    def test_missing_bucket(self):
        other = self.storage.from_("nowhere")
        self.assertRefused(404, "Bucket not found", other.download, "a")
        self.assertEqual(other.list(), [])

    def test_forbidden_key(self):
        self.assertRefused(400, "InvalidKey", self.docs.upload, "a#b", b"1")

    def test_list(self):
        for name in ["l/b.txt", "l/a.txt", "l/sub/c.txt"]:
            self.docs.upload(name, b"1")
        entries = self.docs.list("l")
        self.assertEqual([entry["name"] for entry in entries], ["a.txt", "b.txt", "sub"])
        self.assertIsNone(entries[2]["id"])
        self.assertEqual(entries[0]["metadata"]["size"], 1)
        page = self.docs.list("l", {"limit": 1, "offset": 1})
        self.assertEqual([entry["name"] for entry in page], ["b.txt"])
        down = self.docs.list("l", {"sortBy": {"column": "name", "order": "desc"}})
        self.assertEqual([entry["name"] for entry in down], ["sub", "b.txt", "a.txt"])

    def test_list_v2(self):
        for index in range(5):
            self.docs.upload(f"v/{index}.txt", b"1")
        self.docs.upload("v/sub/x.txt", b"1")
        names, cursor = [], None
        while True:
            options = {"prefix": "v/", "limit": 2, "with_delimiter": True}
            if cursor:
                options["cursor"] = cursor
            page = self.docs.list_v2(options)
            names += [item.name for item in page.objects + page.folders]
            if not page.hasNext:
                break
            cursor = page.nextCursor
        self.assertEqual(names, [f"v/{index}.txt" for index in range(5)] + ["v/sub/"])

    def test_remove(self):
        self.docs.upload("r1.txt", b"1")
        gone = self.docs.remove(["r1.txt", "never.txt"])
        self.assertEqual([entry["name"] for entry in gone], ["r1.txt"])
        self.assertFalse(self.docs.exists("r1.txt"))

    def test_move(self):
        self.docs.upload("m1.txt", b"1")
        self.docs.upload("m3.txt", b"3")
        self.assertEqual(self.docs.move("m1.txt", "m2.txt")["message"], "Successfully moved")
        self.assertEqual(self.docs.download("m2.txt"), b"1")
        self.assertRefused(409, "Duplicate", self.docs.move, "m2.txt", "m3.txt")
        self.assertRefused(404, "not_found", self.docs.move, "m1.txt", "m4.txt")

    def test_copy(self):
        self.docs.upload("c1.txt", b"1")
        self.assertEqual(self.docs.copy("c1.txt", "c2.txt")["Key"], "docs/c2.txt")
        self.assertEqual(self.docs.download("c2.txt"), b"1")
        self.assertRefused(409, "Duplicate", self.docs.copy, "c1.txt", "c2.txt")

    def test_signed_url(self):
        self.docs.upload("s/x.txt", b"signed")
        url = self.docs.create_signed_url("s/x.txt", 60)["signedURL"]
        self.assertEqual(self.emulator.fetch(url), b"signed")
        self.assertRefused(404, "not_found", self.docs.create_signed_url, "s/none", 60)

    def test_signed_urls(self):
        self.docs.upload("s/y@z.txt", b"many")
        urls = self.docs.create_signed_urls(["s/y@z.txt", "s/none"], 60)
        self.assertEqual(self.emulator.fetch(urls[0]["signedURL"]), b"many")
        self.assertIsNone(urls[0]["error"])
        self.assertIsNotNone(urls[1]["error"])

    def test_signed_upload(self):
        signed = self.docs.create_signed_upload_url("su.txt")
        answer = self.docs.upload_to_signed_url("su.txt", signed["token"], b"later")
        self.assertEqual(answer.full_path, "docs/su.txt")
        self.assertEqual(self.docs.download("su.txt"), b"later")
        self.assertRefused(409, "Duplicate", self.docs.create_signed_upload_url, "su.txt")

    def test_public_url(self):
        self.storage.create_bucket("open", options={"public": True})
        self.storage.from_("open").upload("p.txt", b"public")
        url = self.storage.from_("open").get_public_url("p.txt")
        self.assertEqual(self.emulator.fetch(url), b"public")

    def test_buckets(self):
        options = {"public": False, "file_size_limit": 3, "allowed_mime_types": ["text/plain"]}
        self.storage.create_bucket("made", options=options)
        made = self.storage.get_bucket("made")
        self.assertEqual((made.name, made.public, made.file_size_limit), ("made", False, 3))
        self.assertIn("made", [bucket.name for bucket in self.storage.list_buckets()])
        self.assertRefused(409, "Duplicate", self.storage.create_bucket, "made")
        bucket = self.storage.from_("made")
        plain = {"content-type": "text/plain"}
        self.assertRefused(413, "Payload too large", bucket.upload, "a", b"1234", plain)
        self.assertRefused(
            415, "invalid_mime_type", bucket.upload, "a", b"1", {"content-type": "image/png"}
        )
        bucket.upload("a", b"123", plain)
        self.assertRefused(409, "ResourceNotEmpty", self.storage.delete_bucket, "made")
        self.storage.update_bucket("made", {"public": True})
        self.assertTrue(self.storage.get_bucket("made").public)
        self.storage.empty_bucket("made")
        self.assertEqual(
            self.storage.delete_bucket("made")["message"], "Successfully deleted"
        )
        self.assertRefused(404, "Bucket not found", self.storage.get_bucket, "made")

    def test_a_user_sees_only_what_policies_allow(self):
        ann = self.emulator.client(self.emulator.sign_in())
        mine = ann.from_("docs")
        mine.upload("ann/own.txt", b"1")
        self.docs.upload("bob-secret.txt", b"1")
        self.assertEqual(mine.download("ann/own.txt"), b"1")
        self.assertRefused(404, "not_found", mine.download, "bob-secret.txt")
        self.assertRefused(403, "Unauthorized", mine.upload, "elsewhere.txt", b"1")
        self.assertEqual([entry["name"] for entry in mine.list()], ["ann"])
        self.assertEqual(ann.list_buckets(), [])

    def test_the_new_keys_work_through_the_gateway(self):
        self.docs.upload("new-key.txt", b"1")
        secret = self.emulator.keys["secret"]
        self.assertEqual(
            self.emulator.client(secret, secret).from_("docs").download("new-key.txt"), b"1"
        )


class LocalTest(Base):
    profile = "local"

    def test_round(self):
        self.docs.upload("a/b.txt", b"hello")
        self.assertEqual(self.docs.download("a/b.txt"), b"hello")
        self.assertTrue(self.docs.exists("a/b.txt"))
        self.assertEqual([entry["name"] for entry in self.docs.list("a")], ["b.txt"])


class OldTest(Base):
    profile = "old"

    def test_round_without_the_newer_routes(self):
        self.docs.upload("a/b.txt", b"hello")
        self.assertEqual(self.docs.download("a/b.txt"), b"hello")
        self.assertEqual([entry["name"] for entry in self.docs.list("a")], ["b.txt"])
        self.assertRefused(404, "Not Found", self.docs.list_v2, {"prefix": "a/"})
        self.assertRefused(404, "not_found", self.docs.download, "none")


if __name__ == "__main__":
    program = unittest.main(exit=False)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"acceptance: {result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)
