/// The header fields of a message in their order; names are compared without regard to case.
package struct Headers: Sendable {
  /// The fields as they came.
  package private(set) var fields: [(name: String, value: String)]

  package init(_ fields: [(name: String, value: String)] = []) {
    self.fields = fields
  }

  /// The first field of that name.
  package subscript(_ name: String) -> String? {
    get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
    set {
      let index = fields.firstIndex { $0.name.lowercased() == name.lowercased() }
      switch (index, newValue) {
      case (let index?, let value?): fields[index].value = value
      case (let index?, nil): fields.remove(at: index)
      case (nil, let value?): fields.append((name, value))
      case (nil, nil): break
      }
    }
  }
}
