#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
namespace lanescope {
inline double e29_now(){return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()*1e3;}
struct E29 { double t[16]={}; double start=0; int n[16]={}; };
inline E29 e29;
struct E29Scope { int i; double a; explicit E29Scope(int k):i(k),a(e29_now()){} ~E29Scope(){ e29.t[i]+=e29_now()-a; e29.n[i]++; } };
inline void e29_print(const char* w){ if(!getenv("E29")) return; std::string s; const char* names[]={"src_read","alone","callread","add","callwait","workread","workwait","finish_arrows","finish_sort","total","handover","lastwin"}; for(int i=0;i<12;i++){char b[80]; snprintf(b,80,"%s %.2f(%d) ",names[i],e29.t[i],e29.n[i]); s+=b;} fprintf(stderr,"%s %s\n",w,s.c_str()); e29=E29(); }
}
