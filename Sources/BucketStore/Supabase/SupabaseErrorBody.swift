import FoundationEssentials

/// The body of a failed answer, in any of the shapes that the server and its gateway use.
///
/// Storage: `{"statusCode":"404","error":"not_found","message":"…","code":"NoSuchKey"}`, `code`
/// missing on older servers, `statusCode` a number on some; newer storage and sign-in:
/// `{"code":"…","message":"…"}`; sign-in: `{"code":400,"error_code":"…","msg":"…"}` and
/// `{"error":"…","error_description":"…"}`; gateway: `{"message":"…"}`.
struct SupabaseErrorBody: Decodable, Equatable {
  /// The status that is meant, where the body tells it.
  var status: Int?
  /// The stable name of the error.
  var code: String?
  /// The legacy name of the error.
  var error: String?
  /// Text for people.
  var message: String?

  /// Nil when the bytes are no JSON object, or one that holds none of the members of an error.
  init?(_ bytes: [UInt8]) {
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      // Any body that is not one of the shapes is the same to us: not the store's.
      return nil
    }
    if code == nil, error == nil, message == nil { return nil }
  }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Member.self)
    status = Self.text(members, .statusCode).flatMap { Int($0) }
    code = Self.text(members, .errorCode) ?? Self.text(members, .code)
    error = Self.text(members, .error)
    message =
      Self.text(members, .message) ?? Self.text(members, .msg)
      ?? Self.text(members, .errorDescription)
  }

  private enum Member: String, CodingKey {
    case statusCode
    case error
    case message
    case code
    case errorCode = "error_code"
    case msg
    case errorDescription = "error_description"
  }

  /// A member that is a text or a whole number, as text; another kind counts as missing.
  private static func text(_ members: KeyedDecodingContainer<Member>, _ member: Member) -> String? {
    if let text = try? members.decode(String.self, forKey: member) { return text }
    return (try? members.decode(Int.self, forKey: member)).map { String($0) }
  }
}
