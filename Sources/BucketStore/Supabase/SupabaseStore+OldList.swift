import Platform

extension SupabaseStore {
  func oldList(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    throw StoreError(.unsupported, "old")
  }
  func oldInfo(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    throw StoreError(.unsupported, "old")
  }
}
