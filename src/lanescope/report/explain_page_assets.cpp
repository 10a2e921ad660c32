// The style sheet and the script of the page. The Content-Security-Policy names both by their
// SHA-256: after a change tests/end_to_end/test_cli_explain_html.py prints the new hashes.
#include "lanescope/report/explain_html_sections.h"

namespace lanescope::report {

const char kPageStyle[] = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#14181d;--soft:#545d68;--line:#d5dae0;--rail:#eef1f4;--card:#f7f8fa;
--compute:#0b5fa5;--on-compute:#fff;--comm:#8a3a78;--on-comm:#fff;--comm-line:#c98abb;--copy:#e09c1a;
 --on-copy:#14181d;--copy-dot:#a86f08;--copy-edge:#8a5a00;
--op:#cfe3f5;--on-op:#0d2233;--range:#e3dff0;--on-range:#221b38;--python:#d9ecd5;--on-python:#15280f;--call:#f6d9a8;
 --on-call:#332104;
--hatch:#fff;--hatch-line:#c0392b;--idle:#fff;--idle-dot:#8a949f;--edge:#76818d;--mark:#b3261e;--band:rgba(179,38,30,
 .09);
 --arrow:#14181d;--stake:#b3261e}
@media (prefers-color-scheme:dark){:root{--paper:#12161b;--ink:#e8ecf0;--soft:#a3adb8;--line:#353d47;--rail:#1d232b;
 --card:#191f26;
--compute:#5aa9e6;--on-compute:#06121c;--comm:#d08fc2;--on-comm:#1d0a19;--comm-line:#8f4b80;--copy:#e8ab36;
 --on-copy:#1c1200;--copy-dot:#b8841f;--copy-edge:#e8ab36;
--op:#22455f;--on-op:#e3f0fa;--range:#3b3552;--on-range:#ece8f8;--python:#27452a;--on-python:#e2f3e0;--call:#614411;
 --on-call:#fdeccb;
--hatch:#12161b;--hatch-line:#f08a7e;--idle:#12161b;--idle-dot:#77828e;--edge:#77828e;--mark:#ff9d92;--band:rgba(255,
 157,146,.13);
 --arrow:#e8ecf0;--stake:#ff9d92}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.25rem 1rem 3rem;max-width:57rem;background:var(--paper);color:var(--ink);
 font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.3;margin:.2rem 0 .6rem;text-wrap:balance}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;line-height:1.4;margin:1.2rem 0 .4rem}
h4{font-size:.85rem;margin:.9rem 0 .2rem;color:var(--soft)}
p{margin:.5rem 0;max-width:46rem}
ul,ol{margin:.3rem 0;padding-left:1.2rem}
a{color:inherit}
code{font:.92em ui-monospace,monospace}
.meta,.remark,.where,figcaption,caption,small{color:var(--soft);font-size:.85rem}
.damage{border-left:4px solid var(--mark);padding-left:.7rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0}
.finding{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.2rem 1rem 1rem;margin:.8rem 0}
.number{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:.3rem 1.8rem;margin:.5rem 0;font-size:.9rem}
.facts dt{color:var(--soft);font-size:.8rem}.facts dd{margin:0}
.meter{vertical-align:-1px}
.sums{font-variant-numeric:tabular-nums}
.evidence-list>li{margin-bottom:.7rem}
figure{margin:.5rem 0 .2rem -1.2rem}
.scroll{overflow-x:auto}
.scroll:focus-visible,button:focus-visible,a:focus-visible,summary:focus-visible{outline:2px solid var(--mark);
 outline-offset:2px}
.picture svg{display:block;width:100%;height:auto}
.narrow{display:none}
@media screen and (max-width:46rem){.wide{display:none}.narrow{display:block}.narrow svg{max-width:30rem}figure{
 margin-left:-1.2rem}.finding{padding:.2rem .6rem 1rem}tbody th{min-width:7rem}}
table{border-collapse:collapse;font-size:.88rem;margin:.6rem 0}
caption{text-align:left;padding-bottom:.3rem}
th,td{padding:.25rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);font-weight:400}
thead th{font-weight:600;vertical-align:bottom}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tbody th{min-width:11rem}
th small{display:block;max-width:18rem;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.cause th{padding-left:1.6rem;color:var(--soft)}.sum th,.sum td{font-weight:600}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;text-align:inherit;
 text-decoration:underline dotted}
th[aria-sort=descending] button::after{content:" \25BC"}th[aria-sort=ascending] button::after{content:" \25B2"}
.key{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;font-size:.88rem}
.key svg,dt svg{vertical-align:-2px}
.legend dt{font-weight:600;margin-top:.6rem}.legend dd{margin:0}
details{margin:.6rem 0}summary{cursor:pointer}
.defs{position:absolute;width:0;height:0}
text{font:12px system-ui,sans-serif;fill:var(--ink)}
text.small{font-size:11px;fill:var(--soft)}text.strong{fill:var(--mark);font-weight:600}text.label{font-size:13px}
.axis,.grid{stroke:var(--soft);stroke-width:1}.grid{stroke:var(--line)}
.rail{fill:var(--rail)}.band{fill:var(--band);stroke:var(--mark);stroke-width:1;stroke-dasharray:4 3}
.k-compute,.k-comm,.k-copy,.k-op,.k-range,.k-python,.k-call,.k-other,.k-wait,.k-idle{stroke:var(--paper);
 stroke-width:.7}
.k-compute{fill:var(--compute)}.k-comm{fill:url(#bars)}.k-copy{fill:url(#dots);stroke:var(--copy-edge)}
.k-wait{fill:url(#hatch);stroke:var(--hatch-line)}.k-idle{fill:url(#faint);stroke:var(--idle-dot)}
.thin{fill:var(--hatch-line);stroke:none;fill-opacity:.6}
.k-op,.k-range,.k-python,.k-call,.k-other{stroke:var(--edge)}
.k-op{fill:var(--op)}.k-range{fill:var(--range)}.k-python{fill:var(--python)}.k-call{fill:var(--call)}.k-other{
 fill:var(--line)}
.evidence{stroke:var(--mark);stroke-width:2.5}
text[class^=in-]{font-size:11px;pointer-events:none}
text.in-k-compute{fill:var(--on-compute)}text.in-k-comm{fill:var(--on-comm)}text.in-k-copy{fill:var(--on-copy)}
text.in-k-op{fill:var(--on-op)}text.in-k-range{fill:var(--on-range)}text.in-k-python{fill:var(--on-python)}
 text.in-k-call{fill:var(--on-call)}
text.in-k-comm{paint-order:stroke;stroke:var(--comm);stroke-width:3px}
text.in-k-copy{paint-order:stroke;stroke:var(--copy);stroke-width:3px}
text.in-k-wait,text.in-k-idle{paint-order:stroke;stroke:var(--paper);stroke-width:4px;font-weight:600}
.plate{fill:var(--paper);fill-opacity:.85}
.arrow{fill:none;stroke:var(--arrow);stroke-width:1.5}.head{fill:var(--arrow)}.more{fill:var(--mark)}
.whisker{stroke:var(--ink);stroke-width:1}.stake{fill:var(--stake)}
.hatch-back{fill:var(--hatch)}.hatch-line{stroke:var(--hatch-line);stroke-width:2}
.faint-back{fill:var(--idle)}.faint-dot{fill:var(--idle-dot)}
.dots-back{fill:var(--copy)}.dots-dot{fill:var(--copy-dot)}
.bars-back{fill:var(--comm)}.bars-line{stroke:var(--comm-line);stroke-width:1}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#bbb;--rail:#f0f0f0;--card:#fff;
--compute:#0b5fa5;--on-compute:#fff;--comm:#8a3a78;--on-comm:#fff;--comm-line:#c98abb;--copy:#e09c1a;
 --on-copy:#14181d;--copy-dot:#a86f08;--copy-edge:#8a5a00;
--op:#cfe3f5;--on-op:#0d2233;--range:#e3dff0;--on-range:#221b38;--python:#d9ecd5;--on-python:#15280f;--call:#f6d9a8;
 --on-call:#332104;
--hatch:#fff;--hatch-line:#c0392b;--idle:#fff;--idle-dot:#8a949f;--edge:#76818d;--mark:#b3261e;--band:rgba(179,38,30,
 .09);
 --arrow:#000;--stake:#b3261e}
nav{display:none}.scroll{overflow:visible}table{font-size:.8rem}th,td{padding:.15rem .3rem}
 tbody th{min-width:0}th small{max-width:14rem;font-size:.75rem}figure,tr,.facts{break-inside:avoid}h2,h3,h4{
 break-after:avoid}
html{font-size:10pt}svg,svg *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

// No '<' and no '&': the page stays well-formed XML.
const char kPageScript[] = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells), body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") !== "descending";
      const number = (row) => Number(row.cells[column].dataset.v);
      const text = (row) => row.cells[column].textContent;
      const order = (a, b) => column === 0 ? text(b).localeCompare(text(a)) : number(b) - number(a);
      const rows = Array.from(body.rows).sort((a, b) => falling ? order(a, b) : order(b, a));
      body.replaceChildren(...rows);
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    });
  });
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
)js";

const char kPageStyleHash[] = "sha256-9CMnXkerViMBA7DVDKFGf0vRiyYRrEFb1XPXz6ggH00=";
const char kPageScriptHash[] = "sha256-4ieYQLrEzjJbYSIloAmhGrFbj20WTlyP2kl2QBoL2rU=";

}  // namespace lanescope::report
