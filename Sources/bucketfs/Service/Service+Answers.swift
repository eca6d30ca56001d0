import BucketStore
import FileSystem
import Glibc
import Platform

extension Service {
  /// Answers one request of a verb, on a thread of its own.
  func answer(_ request: ControlRequest, _ cancellation: Cancellation) -> ControlReply {
    do throws(Complaint) {
      switch request.verb {
      case .status: return .status(status)
      case .mount, .unmount, .offline, .online, .cached, .ensure, .info, .unreachable:
        throw Complaint(.usage, "\(request.verb.rawValue) is not done by the mount")
      }
    } catch {
      return ControlReply(error)
    }
  }

  private var status: StatusReport {
    StatusReport(
      state: "serving", network: nil, store: nil, session: store.session.rawValue, cache: nil,
      listings: nil, queue: StatusReport.Queue(waiting: 0, uploading: 0, failed: 0),
      hiddenKeys: fileSystem.hiddenKeyCount, pid: getpid(), mountpoint: mountpoint,
      source: plan.source, since: since.text, cacheDirectory: plan.cacheDirectory,
      log: log, version: Help.version)
  }
}
