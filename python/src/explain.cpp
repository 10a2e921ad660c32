// explain: the rules run over a trace; its text, JSON and page on demand.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/questions.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_text.h"

namespace lanescope::python {
namespace {

// The facts borrow the trace, so it is kept here.
struct Explained {
  TracePtr trace;
  explain::Facts facts;
  explain::Explanation explanation;
};

std::unique_ptr<Explained> explain_trace(std::shared_ptr<Trace> trace,
                                         std::optional<std::int64_t> step,
                                         std::vector<std::string> only) {
  return value_or_raise(without_gil([&]() -> Result<std::unique_ptr<Explained>> {
    LANESCOPE_TRY(explain::Facts facts, explain::gather_facts(*trace, {.step = step}));
    auto all = std::make_unique<Explained>(Explained{std::move(trace), std::move(facts), {}});
    // Borrows the facts at their last place.
    LANESCOPE_TRY(all->explanation,
                  explain::run_rules_and_gains(all->facts, {std::move(only), {}}));
    return all;
  }));
}

report::PageOptions page_options(std::string trace_name, bool has_links) {
  return {.trace_name = std::move(trace_name), .has_links = has_links};
}

Result<void> write_page(const Explained& all, const std::string& path, std::string trace_name) {
  const std::string page = report::explanation_html(all.facts, all.explanation,
                                                    page_options(std::move(trace_name), true));
  LANESCOPE_TRY(const auto file, codec::create_file(path));
  LANESCOPE_TRY_VOID(file->write(page));
  return file->finish();
}

// One list a finding, one entry an evidence: the row of its slice or None.
py::list evidence_rows(const Explained& all) {
  py::list findings;
  for (const explain::Finding& finding : all.explanation.findings) {
    py::list rows;
    for (const explain::Evidence& evidence : finding.evidence)
      rows.append(evidence.slice == kNone<SliceId> ? py::object(py::none())
                                                   : py::object(py::int_(raw(evidence.slice))));
    findings.append(std::move(rows));
  }
  return findings;
}

py::list rules() {
  py::list list;
  for (const explain::Rule* rule : explain::all_rules())
    list.append(py::make_tuple(rule->id, rule->question));
  return list;
}

}  // namespace

void bind_explain(py::module_& m) {
  py::class_<Explained>(m, "Explained")
      .def(
          "text",
          [](const Explained& all, bool markdown, bool full) {
            return to_str(without_gil([&] {
              if (!full && !markdown && !all.explanation.is_answer)
                return report::explanation_screen(all.facts, all.explanation,
                                                  {.full_hint = "print(explanation.full_text())"});
              return report::explanation_text(all.facts, all.explanation, {.markdown = markdown});
            }));
          },
          py::kw_only(), py::arg("markdown"), py::arg("full"))
      .def("json",
           [](const Explained& all) {
             return to_str(
                 without_gil([&] { return report::explanation_json(all.facts, all.explanation); }));
           })
      .def(
          "html",
          [](const Explained& all, std::string trace_name, bool has_links) {
            return to_str(without_gil([&] {
              return report::explanation_html(all.facts, all.explanation,
                                              page_options(std::move(trace_name), has_links));
            }));
          },
          py::kw_only(), py::arg("trace_name"), py::arg("has_links"))
      .def(
          "write_html",
          [](const Explained& all, const std::string& path, std::string trace_name) {
            value_or_raise(
                without_gil([&] { return write_page(all, path, std::move(trace_name)); }));
          },
          py::arg("path"), py::kw_only(), py::arg("trace_name"))
      .def("evidence_rows", &evidence_rows);
  m.def("explain", &explain_trace, py::arg("trace"), py::kw_only(), py::arg("step"),
        py::arg("only"));
  m.def("explain_rules", &rules);
  // None: all of them.
  m.def("rules_for_question",
        [](const std::string& text) -> std::optional<std::vector<std::string>> {
          if (!explain::is_question(text)) return std::vector<std::string>();
          explain::AskedRules rules = explain::rules_for_question(text);
          if (rules.all) return std::nullopt;
          return std::move(rules.ids);
        });
}

}  // namespace lanescope::python
