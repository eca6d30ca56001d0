/// A credential. It shows nothing of itself when it is printed, dumped or logged.
struct Secret: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The credential itself, for the store alone.
  let revealed: String

  init(_ text: String) {
    revealed = text
  }

  var description: String { "(secret)" }
  var debugDescription: String { "(secret)" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
