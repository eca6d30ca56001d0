/// What the environment says of a Supabase project.
struct SupabaseEnvironment: Equatable, Sendable {
  /// `SUPABASE_URL`
  var url: String?
  /// `SUPABASE_KEY`
  var key: Secret?
  /// `SUPABASE_ACCESS_TOKEN`: a signed-in user's, which is not renewed.
  var accessToken: Secret?

  /// That of this process.
  static var current: SupabaseEnvironment {
    SupabaseEnvironment(
      url: Places.environment("SUPABASE_URL"),
      key: Places.environment("SUPABASE_KEY").map(Secret.init),
      accessToken: Places.environment("SUPABASE_ACCESS_TOKEN").map(Secret.init))
  }

  /// Whether key and token may be sent to a project: where `SUPABASE_URL` names one, to that one alone.
  func covers(_ project: String) -> Bool {
    guard let url else { return true }
    do throws(Complaint) {
      return try Source.project(url) == project
    } catch {
      // Not an address: no project is meant, and they go nowhere.
      return false
    }
  }
}
